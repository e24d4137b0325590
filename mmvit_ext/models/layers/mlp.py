"""The two-layer perceptron of a transformer block."""

from collections.abc import Callable

import torch.nn as nn
from torch import Tensor


class Mlp(nn.Module):
    """Two projections with an activation between.

    Args:
        dim: Channels of input and output.
        hidden_dim: Channels between the projections.
        act: The activation.
        drop_rate: Dropout after each projection.
        projection: Maker of a projection, called with the channels in and out: ``nn.Linear`` for
            channels-last tokens, a 1x1 convolution for (N, C, H, W) maps.
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        act: nn.Module,
        drop_rate: float = 0.0,
        projection: Callable[[int, int], nn.Module] = nn.Linear,
    ) -> None:
        super().__init__()
        self.fc1 = projection(dim, hidden_dim)
        self.act = act
        self.fc2 = projection(hidden_dim, dim)
        self.drop = nn.Dropout(drop_rate)

    def forward(self, x: Tensor) -> Tensor:
        """Maps x to a tensor of the same shape."""
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))
