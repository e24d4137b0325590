"""MViTv2's weights, plain or with residual attention.

Sources: ADiko1997/ReViT (``model/revit_model.py``, the keys of facebookresearch/mvit), timm
(``mvitv2.py``), and the MViT of mmpretrain.
"""

from torch import Tensor

from .source import Source, State, rename, token_grid

POOL = 'blocks.0.attn.pool_q.weight'


def _is_authors(state: State) -> bool:
    return POOL in state and 'patch_embed.proj.weight' in state


def _is_openmmlab(state: State) -> bool:
    return POOL in state and 'patch_embed.projection.weight' in state


def _is_timm(state: State) -> bool:
    # timm's final norm stands under a name that our own files do not have
    return f'stages.0.{POOL}' in state and 'norm.weight' in state


def _from_flat(state: State) -> dict[str, Tensor]:
    """Blocks numbered through; a stage starts where a block's channels change."""
    starts = sorted(int(k.split('.')[1]) for k in state if _is_shortcut(k))
    names = {
        'patch_embed.projection.': 'patch_embed.proj.',
        'alpha': 'residual.alpha',
        'norm.': f'norm{len(starts)}.',
    }
    out = {}
    for key, value in state.items():
        if key.startswith('blocks.'):
            number, rest = key.split('.', 2)[1:]
            stage = sum(start <= int(number) for start in starts)
            first = starts[stage - 1] if stage else 0
            out[f'stages.{stage}.blocks.{int(number) - first}.{rest}'] = value
        elif key == 'pos_embed':
            out['absolute_pos_embed'] = token_grid(key, value)
        else:
            prefix = next((name for name in names if key.startswith(name)), '')
            out[names.get(prefix, '') + key[len(prefix) :]] = value
    return out


def _is_shortcut(key: str) -> bool:
    parts = key.split('.')
    return parts[0] == 'blocks' and parts[2:] == ['proj', 'weight']


def _from_timm(state: State) -> dict[str, Tensor]:
    last = max(int(k.split('.')[1]) for k in state if k.startswith('stages.'))
    out = {}
    for key, value in state.items():
        key = rename(key, {'.shortcut_proj_attn.': '.proj.'})
        out[key.replace('norm.', f'norm{last}.', 1) if key.startswith('norm.') else key] = value
    return out


SOURCES = [
    Source('MViT authors', _is_authors, _from_flat, heads=('head.projection',)),
    Source('OpenMMLab MViT', _is_openmmlab, _from_flat, heads=('head.fc',)),
    Source('timm MViTv2', _is_timm, _from_timm, heads=('head.fc',)),
]
