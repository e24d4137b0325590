"""Backbones, their layers, and the conversion of foreign weights."""

from .backbones import AugSwin, AugViT, ReMViTv2, ReSwin, ReViT, ShiftViT

__all__ = ['AugSwin', 'AugViT', 'ReMViTv2', 'ReSwin', 'ReViT', 'ShiftViT']
