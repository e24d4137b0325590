"""Layers that more than one backbone family uses."""

from .mlp import Mlp
from .padding import pad_to_multiple
from .position import relative_position_index, resize_bias_table, resize_grid
from .residual_attention import ResidualAttention
from .shift import shift_channels
from .window import shift_mask, window_partition, window_reverse

__all__ = [
    'Mlp',
    'ResidualAttention',
    'pad_to_multiple',
    'relative_position_index',
    'resize_bias_table',
    'resize_grid',
    'shift_channels',
    'shift_mask',
    'window_partition',
    'window_reverse',
]
