"""Backbones: one file a family."""

from .mvit import ReMViTv2
from .shiftvit import ShiftViT
from .swin import AugSwin, ReSwin
from .vit import AugViT, ReViT

__all__ = ['AugSwin', 'AugViT', 'ReMViTv2', 'ReSwin', 'ReViT', 'ShiftViT']
