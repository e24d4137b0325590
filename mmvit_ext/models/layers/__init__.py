"""Layers that more than one backbone family uses."""

from .augmented_shortcut import AugmentedShortcut, Shortcuts
from .block import TransformerBlock
from .circulant import BlockCirculant
from .factored_attention import attend
from .mlp import Mlp
from .padding import pad_to_multiple
from .position import relative_position_index, resize_bias_table, resize_grid, resize_line
from .precision import full_precision, without_autocast
from .residual_attention import Gates, ResidualAttention
from .score_factors import Product, ScoreFactors, Scores, fit_factors
from .score_form import checked_form, in_factors
from .score_grid import ScoreGrid, fit_scores
from .shift import shift_channels
from .window import shift_mask, window_partition, window_reverse

__all__ = [
    'AugmentedShortcut',
    'BlockCirculant',
    'Gates',
    'Mlp',
    'Product',
    'ResidualAttention',
    'ScoreFactors',
    'ScoreGrid',
    'Scores',
    'Shortcuts',
    'TransformerBlock',
    'attend',
    'checked_form',
    'fit_factors',
    'fit_scores',
    'full_precision',
    'in_factors',
    'pad_to_multiple',
    'relative_position_index',
    'resize_bias_table',
    'resize_grid',
    'resize_line',
    'shift_channels',
    'shift_mask',
    'window_partition',
    'window_reverse',
    'without_autocast',
]
