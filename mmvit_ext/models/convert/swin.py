"""Swin's weights, plain or with residual attention.

Sources: ADiko1997/ReViT (``model/reswin.py``, the keys of microsoft/Swin-Transformer), timm
(``swin_transformer.py``), and the Swin of mmdet, mmseg and mmpretrain.
"""

from torch import Tensor

from .source import Source, State, last_stage, rename, token_grid

# Computed from window and image size; never loaded.
RECOMPUTED = ('relative_position_index', 'relative_coords_table', 'attn_mask')
BIAS_TABLE = '.blocks.0.attn.relative_position_bias_table'


def _matches_microsoft(state: State) -> bool:
    return f'layers.0{BIAS_TABLE}' in state and not _matches_timm(state)


def _matches_timm(state: State) -> bool:
    # timm merges patches at the start of a stage, the authors at its end
    merges = {key.split('.')[1] for key in state if '.downsample.' in key}
    return f'layers.0{BIAS_TABLE}' in state and bool(merges) and '0' not in merges


def _matches_openmmlab(state: State) -> bool:
    return 'stages.0.blocks.0.attn.w_msa.relative_position_bias_table' in state


def _from_microsoft(state: State) -> dict[str, Tensor]:
    return _from_layers(state, downsample_offset=0)


def _from_timm(state: State) -> dict[str, Tensor]:
    return _from_layers(state, downsample_offset=-1)


def _from_layers(state: State, downsample_offset: int) -> dict[str, Tensor]:
    final = f'norm{last_stage(state, "layers")}.'
    out = {}
    for key, value in state.items():
        parts = key.split('.')
        if parts[-1] in RECOMPUTED:
            continue
        if parts[0] == 'norm':
            key = key.replace('norm.', final, 1)
        elif parts[0] == 'layers':
            offset = downsample_offset if parts[2] == 'downsample' else 0
            key = '.'.join(['stages', str(int(parts[1]) + offset), *parts[2:]])
        out[key] = token_grid(key, value) if key == 'absolute_pos_embed' else value
    return out


def _from_openmmlab(state: State) -> dict[str, Tensor]:
    names = {
        'patch_embed.projection.': 'patch_embed.proj.',
        '.attn.w_msa.': '.attn.',
        '.ffn.layers.0.0.': '.mlp.fc1.',
        '.ffn.layers.1.': '.mlp.fc2.',
    }
    out = {}
    for key, value in state.items():
        if key.split('.')[-1] in RECOMPUTED:
            continue
        if '.downsample.' in key:
            value = _neighbours_first(value)
        if key == 'absolute_pos_embed':
            value = token_grid(key, value)
        out[rename(key, names)] = value
    return out


def _neighbours_first(value: Tensor) -> Tensor:
    """Reorders the joined 2x2 neighbours of a patch merging layer to the authors' order.

    OpenMMLab unfolds, so its last axis runs over (channel, row, column); the authors' runs over
    (column, row, channel).
    """
    *front, joined = value.shape
    grid = value.reshape(*front, joined // 4, 2, 2)
    # (..., channel, row, column) -> (..., column, row, channel)
    return grid.transpose(-1, -3).reshape(*front, joined)


SOURCES = [
    Source('timm Swin', _matches_timm, _from_timm, heads=('head.fc',)),
    Source('microsoft Swin', _matches_microsoft, _from_microsoft, heads=('head',)),
    Source('OpenMMLab Swin', _matches_openmmlab, _from_openmmlab, heads=('head.fc',)),
]
