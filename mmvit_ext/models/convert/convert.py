"""One call that turns any known source of weights into this package's keys."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from . import mvit, shiftvit, swin, vit
from .source import Source, State
from .unwrap import split_backbone, unwrap


def _is_own(state: State) -> bool:
    blocks = ('stages.0.blocks.0.mlp.fc1.weight', 'blocks.0.mlp.fc1.weight')
    # our output norms are numbered, and position tables are grids with a name of their own
    foreign = 'norm.weight' in state or 'pos_embed' in state
    return 'patch_embed.proj.weight' in state and any(b in state for b in blocks) and not foreign


OWN = Source('mmvit_ext', _is_own, dict, heads=('head.fc',))
PARTS = ('weight', 'bias')
SOURCES = [*mvit.SOURCES, *vit.SOURCES, *shiftvit.SOURCES, *swin.SOURCES, OWN]


class Converted(NamedTuple):
    """A converted checkpoint.

    Attributes:
        source: Where the weights come from, one of the names in :data:`SOURCES`.
        backbone: Backbone weights in our keys.
        head: ``fc.weight`` and ``fc.bias`` of the classifier, or empty.
    """

    source: str
    backbone: dict[str, Tensor]
    head: dict[str, Tensor]


def convert(state_dict: Mapping[str, Any]) -> Converted:
    """Converts weights; the source is found from the keys.

    Knows ShiftViT of microsoft/SPACH; ReSwin, ReMViTv2 and ReViT of ADiko1997/ReViT; Aug-ViT of
    huawei-noah; Swin, MViTv2, ViT and DeiT of their authors, of timm and of OpenMMLab; and this
    package's own files; bare or within a classifier, detector or segmentor, in the usual wrappers
    (``state_dict``, ``model``, ``module.``, ...).

    Args:
        state_dict: A state dict, or a checkpoint that holds one.

    Returns:
        Source, backbone and head. Buffers that are computed anew are left out.

    Raises:
        ValueError: If there are no weights, or their keys fit no known source.
    """
    weights, others = split_backbone(unwrap(state_dict))
    for source in SOURCES:
        if source.matches(weights):
            # a bare network has its head among its own weights
            head = _head(others or weights, source.heads)
            return Converted(source.name, source.translate(_without(weights, source.heads)), head)
    first = ', '.join(list(weights)[:3])
    names = ', '.join(source.name for source in SOURCES)
    raise ValueError(f'the keys fit no known source: {first}, ...; known are {names}')


def _head(state: State, names: Sequence[str]) -> dict[str, Tensor]:
    for name in names:
        found = {part: state[f'{name}.{part}'] for part in PARTS if f'{name}.{part}' in state}
        if found:
            return {f'fc.{part}': value for part, value in found.items()}
    return {}


def _without(state: State, names: Sequence[str]) -> dict[str, Tensor]:
    prefixes = tuple(f'{name}.' for name in names)
    return {k: v for k, v in state.items() if not k.startswith(prefixes)}
