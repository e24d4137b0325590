"""Backbones, their layers, and the conversion of foreign weights."""

from .backbones import ReSwin, ShiftViT

__all__ = ['ReSwin', 'ShiftViT']
