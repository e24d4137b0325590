"""Measurements of models: their size, their work."""

from .complexity import Complexity, count

__all__ = ['Complexity', 'count']
