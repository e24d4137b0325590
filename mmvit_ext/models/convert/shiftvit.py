"""ShiftViT's weights: microsoft/SPACH (``models/shiftvit.py``)."""

from torch import Tensor

from .source import Source, State, last_stage, rename


def _matches_spach(state: State) -> bool:
    first = state.get('layers.0.blocks.0.mlp.fc1.weight')
    return first is not None and first.ndim == 4


def _from_spach(state: State) -> dict[str, Tensor]:
    final = f'norm{last_stage(state, "layers")}.'
    out = {}
    for key, value in state.items():
        if key.startswith('norm.'):
            out[key.replace('norm.', final, 1)] = value
        else:
            # a block has one norm; the authors call it by its place in a transformer block
            out[rename(key, {'layers.': 'stages.', '.norm2.': '.norm.'})] = value
    return out


SOURCES = [Source('SPACH ShiftViT', _matches_spach, _from_spach, heads=('head',))]
