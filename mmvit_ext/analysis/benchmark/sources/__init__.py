"""Where models come from: the registries of OpenMMLab, timm, torchvision, and own references."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

import torch

from mmvit_ext.errors import UsageError

from ..backbone import Backbone
from ..spec import Spec, near_matches
from . import from_registry, from_timm, from_torchvision, reference


@dataclass(frozen=True)
class Source:
    """A place that models come from.

    Attributes:
        names: Gives the names that it knows.
        build: Makes the model of a name, with keyword arguments.
    """

    names: Callable[[], Collection[str]]
    build: Callable[..., Backbone]


SOURCES = {
    scope: Source(partial(from_registry.names, scope), partial(from_registry.build, scope))
    for scope in ('mmvit_ext', 'mmdet', 'mmseg', 'mmpretrain')
} | {
    'timm': Source(from_timm.names, from_timm.build),
    'torchvision': Source(from_torchvision.names, from_torchvision.build),
    'reference': Source(reference.names, reference.build),
}


def build(spec: Spec) -> Backbone:
    """Builds a model, with the same random weights each time.

    Args:
        spec: Its name and arguments.

    Returns:
        The backbone.

    Raises:
        UsageError: If the source or the name is unknown (names near matches), its package is not
            installed, or the model does not take the arguments.
    """
    source = SOURCES.get(spec.source)
    if source is None:
        raise UsageError(
            f"--models={spec.text}: there is no source '{spec.source}'; give one of "
            f'{", ".join(SOURCES)}'
        )
    try:
        known = source.names()
    except ModuleNotFoundError as error:
        raise UsageError(
            f'--models={spec.text}: {error}; install it, or leave the model out'
        ) from error
    if spec.name not in known:
        raise UsageError(
            f"--models={spec.text}: {spec.source} has no '{spec.name}'; "
            f'{near_matches(spec.name, known)}'
        )
    torch.manual_seed(0)
    try:
        return source.build(spec.name, **spec.arguments)
    # what constructors of other packages raise on arguments that they do not know or like
    except (TypeError, ValueError, KeyError, AssertionError, RuntimeError) as error:
        reason = ' '.join(str(error).split())
        raise UsageError(f'--models={spec.text}: cannot be built ({reason})') from error
