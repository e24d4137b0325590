"""Weights of plain ViTs, with residual attention, augmented shortcuts or neither.

Sources: ADiko1997/ReViT (``model/revit_model.py``), huawei-noah/Efficient-AI-Backbones
(``augvit_pytorch/models/augvit.py``), timm (``vision_transformer.py``, ``deit.py``), and the ViT
and DeiT of mmpretrain.
"""

import math
import re

import torch
from torch import Tensor

from .source import Source, State, last_stage, rename, token_grid

# One name a path and a place in augvit: ``augs_attn2`` is the second path beside attention.
AUGMENTED = re.compile(r'blocks\.(\d+)\.(augs_attn|augs)(2?)\.(?:0\.)?(weight_list|weight|bias)$')
PLACE = {'augs_attn': 'shortcut1', 'augs': 'shortcut2'}
# Computed from the width; and the second token of distilled DeiT, which no network here has.
DROPPED = ('index_matrix', 'dist_token')


def _is_vit(state: State) -> bool:
    return 'blocks.0.mlp.fc1.weight' in state and 'pos_embed' in state


def _is_augvit(state: State) -> bool:
    return _is_vit(state) and any(AUGMENTED.match(key) for key in state)


def _is_openmmlab(state: State) -> bool:
    return 'layers.0.ffn.layers.0.0.weight' in state and 'pos_embed' in state


def _from_vit(state: State) -> dict[str, Tensor]:
    _refuse_layer_scale(state)
    final = f'norm{last_stage(state, "blocks")}.'
    out = {}
    for key, value in state.items():
        last = key.split('.')[-1]
        if last in DROPPED or key.startswith('head_dist.'):
            continue
        if key == 'pos_embed':
            out.update(_positions(value, state))
        elif key == 'alpha':
            out['residual.alpha'] = value
        elif key.startswith(('norm.', 'fc_norm.')):
            # networks that pool first may have their last norm behind it
            out[final + last] = value
        elif not AUGMENTED.match(key):
            out[key] = value
    return {**out, **_augmented(state)}


def _refuse_layer_scale(state: State) -> None:
    """Weights that scale each branch would load, and compute something else."""
    scales = [key for key in state if key.endswith(('.ls1.gamma', '.ls2.gamma'))]
    if scales:
        raise ValueError(
            f'{scales[0]}, ...: weights with LayerScale, which these networks do not have; give a '
            'checkpoint without it, such as DeiT or AugReg'
        )


def _positions(value: Tensor, state: State) -> dict[str, Tensor]:
    """Splits the table into the patches' grid and the class token's entry."""
    extra = ('cls_token' in state) + ('dist_token' in state)
    if math.isqrt(value.shape[1]) ** 2 == value.shape[1]:
        # a square table is for patches alone (timm's no_embed_class)
        value = torch.cat([value.new_zeros(1, extra, value.shape[2]), value], dim=1)
    out = {'absolute_pos_embed': token_grid('pos_embed', value[:, extra:])}
    if 'cls_token' in state:
        out['cls_pos_embed'] = value[:, :1]
    return out


def _augmented(state: State) -> dict[str, Tensor]:
    """Joins the paths of each place into one layer, the first path first."""
    paths = {}
    for key in sorted(filter(AUGMENTED.match, state), key=lambda k: AUGMENTED.match(k)[3]):
        block, place, _, kind = AUGMENTED.match(key).groups()
        value = state[key]
        if kind == 'weight_list':
            # b * b vectors of d / b numbers: (b * d) -> (b, b, d / b)
            channels = state[key.replace(kind, 'bias')].numel()
            blocks = value.numel() // channels
            value, kind = value.view(blocks, blocks, -1), 'weight'
        name = f'blocks.{block}.{PLACE[place]}.projection.{kind}'
        paths.setdefault(name, []).append(value)
    return {name: torch.cat(values) for name, values in paths.items()}


def _from_openmmlab(state: State) -> dict[str, Tensor]:
    final = f'norm{last_stage(state, "layers")}.'
    # ln2 stands behind pooling; it is the output norm only where there is no ln1 before that
    norm = 'ln1.' if 'ln1.weight' in state else 'ln2.'
    names = {
        'layers.': 'blocks.',
        '.ln1.': '.norm1.',
        '.ln2.': '.norm2.',
        '.ffn.layers.0.0.': '.mlp.fc1.',
        '.ffn.layers.1.': '.mlp.fc2.',
    }
    out = {}
    for key, value in state.items():
        if key in DROPPED:
            continue
        if key == 'pos_embed':
            out.update(_positions(value, state))
        elif key.startswith('layers.'):
            out[rename(key, names)] = value
        elif key.startswith(norm):
            out[final + key.split('.')[-1]] = value
        else:
            out[rename(key, {'patch_embed.projection.': 'patch_embed.proj.'})] = value
    return out


SOURCES = [
    Source('augvit', _is_augvit, _from_vit, heads=('head',)),
    Source('ViT of timm or ReViT', _is_vit, _from_vit, heads=('head', 'head.projection')),
    Source('OpenMMLab ViT', _is_openmmlab, _from_openmmlab, heads=('head.layers.head', 'head.fc')),
]
