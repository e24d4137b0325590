"""Backbones of OpenMMLab packages, by their names in the packages' registries."""

from collections.abc import Collection
from importlib import import_module
from typing import Any

from mmengine.registry import Registry

from ..backbone import Backbone


def names(scope: str) -> Collection[str]:
    """The models that a package has registered.

    Args:
        scope: The package, which is its scope too, such as 'mmdet'.

    Raises:
        ModuleNotFoundError: If the package is not installed.
    """
    return _registry(scope).module_dict


def build(scope: str, name: str, **arguments: Any) -> Backbone:
    """Builds a backbone from its name and arguments."""
    return Backbone(_registry(scope).build({'type': name, **arguments}))


def _registry(scope: str) -> Registry:
    registry = import_module(f'{scope}.registry').MODELS
    registry.import_from_location()
    return registry
