"""Networks as their authors compute them, in plain torch: what the package's are held against."""

from collections.abc import Collection
from typing import Any

from ...backbone import Backbone
from .augvit import ReferenceAugViT
from .shiftvit import ReferenceShiftViT

# sizes of the papers, and tiny ones
REFERENCES = {
    'ShiftViT-nano': (ReferenceShiftViT, {'dim': 48, 'depths': (2, 2, 4, 2)}),
    'ShiftViT-T': (ReferenceShiftViT, {}),
    'ShiftViT-S': (ReferenceShiftViT, {'depths': (10, 18, 36, 10)}),
    'AugViT-nano': (ReferenceAugViT, {'dim': 96, 'depth': 4, 'num_heads': 3}),
    'AugViT-S': (ReferenceAugViT, {}),
    'AugViT-B': (ReferenceAugViT, {'dim': 768, 'num_heads': 12}),
}


def names() -> Collection[str]:
    """The networks that there are."""
    return REFERENCES


def build(name: str, **arguments: Any) -> Backbone:
    """Builds a network; arguments replace those of its size."""
    network, settings = REFERENCES[name]
    return Backbone(network(**{**settings, **arguments}))


__all__ = ['REFERENCES', 'ReferenceAugViT', 'ReferenceShiftViT', 'build', 'names']
