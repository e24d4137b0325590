"""Classifiers of torchvision, up to their last map where that can be told apart."""

from collections.abc import Collection
from typing import Any

import torch.nn as nn

from ..backbone import Backbone


def names() -> Collection[str]:
    """The classifiers that torchvision knows."""
    from torchvision import models

    return models.list_models(module=models)


def build(name: str, **arguments: Any) -> Backbone:
    """Builds a model from its name and arguments; one without ``features`` runs as a whole."""
    from torchvision import models

    model = models.get_model(name, **arguments)
    if not hasattr(model, 'features'):
        return Backbone(model)
    # Swin's map is channels-last up to its norm
    behind = [model.norm, model.permute] if hasattr(model, 'permute') else []
    return Backbone(nn.Sequential(model.features, *behind))
