"""Backbones of timm: all maps of a pyramid, the tokens of a plain transformer; any image size."""

import inspect
from collections.abc import Collection
from typing import Any

from ..backbone import Backbone

# arguments that open a model to images of other sizes, where its class has them
ANY_SIZE = {'strict_img_size': False, 'dynamic_img_size': True}


def names() -> Collection[str]:
    """The architectures that timm knows.

    Raises:
        ModuleNotFoundError: If timm is not installed.
    """
    import timm

    return timm.list_models()


def build(name: str, **arguments: Any) -> Backbone:
    """Builds a backbone from its name and arguments."""
    import timm

    model = timm.create_model(name, **arguments)
    taken = inspect.signature(type(model).__init__).parameters
    arguments = {key: value for key, value in ANY_SIZE.items() if key in taken} | arguments
    strides = {stage['reduction'] for stage in getattr(model, 'feature_info', ())}
    if len(strides) > 1:
        return Backbone(timm.create_model(name, features_only=True, **arguments))
    return Backbone(timm.create_model(name, **arguments), 'forward_features')
