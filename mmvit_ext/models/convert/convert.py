"""One call that turns any known source of weights into this package's keys."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from . import shiftvit, swin
from .source import Source, State
from .unwrap import split_backbone, unwrap


def _is_own(state: State) -> bool:
    own_blocks = any(k.startswith('stages.0.blocks.0.mlp.fc1.') for k in state)
    return 'patch_embed.proj.weight' in state and own_blocks


OWN = Source('mmvit_ext', _is_own, dict, head='head.fc')
SOURCES = [OWN, *shiftvit.SOURCES, *swin.SOURCES]


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

    Knows ShiftViT of microsoft/SPACH, ReSwin of ADiko1997/ReViT, Swin of its authors, of timm and
    of mmdet, mmseg and mmpretrain, and this package's own files, bare or within a classifier,
    detector or segmentor, in the usual wrappers (``state_dict``, ``model``, ``module.``, ...).

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
            head = _head(others or weights, source.head)
            return Converted(source.name, source.translate(_without_head(weights, source)), head)
    first = ', '.join(list(weights)[:3])
    names = ', '.join(source.name for source in SOURCES)
    raise ValueError(f'the keys fit no known source: {first}, ...; known are {names}')


def _head(state: State, name: str) -> dict[str, Tensor]:
    found = {part: state.get(f'{name}.{part}') for part in ('weight', 'bias')}
    return {f'fc.{part}': value for part, value in found.items() if value is not None}


def _without_head(state: State, source: Source) -> dict[str, Tensor]:
    return {k: v for k, v in state.items() if not k.startswith(f'{source.head}.')}
