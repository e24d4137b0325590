"""Backbones: one file a family."""

from .shiftvit import ShiftViT
from .swin import ReSwin

__all__ = ['ReSwin', 'ShiftViT']
