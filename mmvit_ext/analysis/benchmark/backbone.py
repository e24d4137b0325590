"""One face for backbones of all packages: images in, a tuple of maps out."""

from collections.abc import Iterator
from typing import Any

import torch.nn as nn
from torch import Tensor

# classes of stochastic depth in mmcv and timm, and in torchvision, with the name of their rate
RATES = {'DropPath': 'drop_prob', 'StochasticDepth': 'p'}


class Backbone(nn.Module):
    """A backbone whose outputs, however they are packed, come as a tuple.

    Stochastic depth is switched off: packages differ in its rate, and it would add noise.

    Args:
        model: Takes images, (N, 3, H, W); changed in place.
        method: The method to call, where that is not the model itself.
    """

    def __init__(self, model: nn.Module, method: str = '__call__') -> None:
        super().__init__()
        self.model = model
        self.method = method
        for module in model.modules():
            rate = RATES.get(type(module).__name__)
            if rate is not None:
                setattr(module, rate, 0.0)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Maps or vectors of the images x, (N, 3, H, W)."""
        return tuple(_tensors(getattr(self.model, self.method)(x)))


def _tensors(outputs: Any) -> Iterator[Tensor]:
    """The tensors in a tensor, or in sequences and dicts of them."""
    if isinstance(outputs, Tensor):
        yield outputs
        return
    for part in outputs.values() if isinstance(outputs, dict) else outputs:
        yield from _tensors(part)
