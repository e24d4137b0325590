"""Residual attention: scores before softmax are carried from layer to layer.

Method: ReViT, "Enhancing Vision Transformers with Residual Attention" (arXiv 2402.11301).
Origin of the method's code: ADiko1997/ReViT (``model/attention.py``, ``model/reswin.py``).
"""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch import Tensor

from .score_factors import ScoreFactors


class ResidualAttention(nn.Module):
    """The gate between the scores of a layer and those carried from the layer before.

    ``S_l = alpha * scores_l + (1 - alpha) * S_{l-1}``; the mixed S_l is both what goes into the
    softmax of layer l and what is carried on. The first layer of a chain has nothing to mix.

    Args:
        alpha: Share of the layer's own scores, in [0, 1]. Fixed at 1 it gives the plain
            transformer, and nothing needs to be carried.
        learnable: Makes alpha a parameter that starts at the given value.
        bounded: Keeps a learnable alpha in (0, 1) as the sigmoid of the parameter; free, the
            parameter is alpha itself (the authors' choice).

    Raises:
        ValueError: If alpha is outside [0, 1], or on the border of a bounded gate.
    """

    def __init__(self, alpha: float = 0.5, learnable: bool = False, bounded: bool = False) -> None:
        super().__init__()
        if not 0 <= alpha <= 1:
            raise ValueError(f'alpha={alpha}: the share of own scores lies in [0, 1]')
        if bounded and learnable and alpha in (0, 1):
            raise ValueError(
                f'alpha={alpha}: a bounded gate starts inside (0, 1); choose e.g. 0.99 for nearly '
                'plain attention'
            )
        self.bounded = bounded
        start = math.log(alpha / (1 - alpha)) if bounded and learnable else alpha
        self.alpha = nn.Parameter(torch.tensor([float(start)])) if learnable else float(alpha)

    @property
    def learnable(self) -> bool:
        """Whether alpha is a parameter."""
        return isinstance(self.alpha, nn.Parameter)

    @property
    def carries(self) -> bool:
        """Whether scores have to be carried on; not with alpha fixed at 1."""
        return self.learnable or self.alpha != 1

    def gate(self) -> Tensor | float:
        """The share of own scores: a float if fixed, a tensor of one element if learnable."""
        if self.learnable and self.bounded:
            return torch.sigmoid(self.alpha)
        return self.alpha

    def forward(self, scores: Tensor, carried: Tensor | None = None) -> Tensor:
        """Mixes the scores of a layer with the carried ones.

        Args:
            scores: Scaled products of queries and keys, (..., queries, keys).
            carried: Mixed scores of the layer before, of the same shape, or None in the first
                layer of a chain.

        Returns:
            The mixed scores, which go into the softmax and on to the next layer.
        """
        if carried is None or not self.carries:
            return scores
        return torch.lerp(carried, scores, self._weight(scores))

    def mix_(self, scores: Tensor, carried: Tensor | None = None) -> Tensor:
        """:meth:`forward` in the memory of the scores, unless the gradient of alpha needs them.

        Args:
            scores: As in :meth:`forward`; not to be used any more.
            carried: As in :meth:`forward`, or with a single head for all, (..., 1, queries, keys).

        Returns:
            The mixed scores.
        """
        if carried is None or not self.carries:
            return scores
        if self.learnable and torch.is_grad_enabled():
            return self(scores, carried)
        return scores.lerp_(carried, 1 - self._weight(scores))

    def _weight(self, scores: Tensor) -> Tensor | float:
        gate = self.gate()
        return gate.to(scores.dtype) if isinstance(gate, Tensor) else gate

    def mix_factors(self, own: ScoreFactors, carried: ScoreFactors) -> ScoreFactors:
        """:meth:`forward` of scores that are kept in factors.

        Args:
            own: Scaled scores of the layer.
            carried: Mixed scores of the layer before, fitted to the same heads and grids.

        Returns:
            The mixed scores, in factors.
        """
        if not self.carries:
            return own
        gate = self.gate()
        return own.scaled(gate).plus(carried.scaled(1 - gate))

    def begin_plain(self) -> None:
        """Starts the gate without effect, as in the plain transformer.

        Raises:
            ValueError: If this gate cannot: it is fixed below 1, or bounded.
        """
        if not self.carries:
            return
        if not self.learnable or self.bounded:
            raise ValueError(
                f'{"a bounded" if self.learnable else "a fixed"} alpha={self._value():.3g} '
                'cannot begin as the plain transformer; make it learnable and free, '
                "alpha_mode='shared' or 'block' and alpha_bounded=False"
            )
        nn.init.ones_(self.alpha)

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        kind = f'learnable=True, bounded={self.bounded}' if self.learnable else 'learnable=False'
        # a parameter on the meta device has no value
        if self.learnable and self.alpha.is_meta:
            return kind
        return f'alpha={self._value():.3g}, {kind}'

    def _value(self) -> float:
        gate = self.gate()
        return float(gate.detach()) if isinstance(gate, Tensor) else gate


@dataclass(frozen=True)
class Gates:
    """Where the gates of a network live: one that all blocks share, or one in each that mixes.

    Attributes:
        alpha: Share of a block's own scores: the value if fixed, the start if learnable.
        mode: 'fixed', 'shared' (one parameter for the whole network) or 'block' (one for each
            block that mixes).
        bounded: Keeps a learnable alpha in (0, 1) through a sigmoid.

    Raises:
        ValueError: If the mode is unknown or alpha is out of range.
    """

    alpha: float = 1.0
    mode: str = 'fixed'
    bounded: bool = False

    def __post_init__(self) -> None:
        if self.mode not in ('fixed', 'shared', 'block'):
            raise ValueError(f"alpha_mode='{self.mode}': choose from fixed, shared, block")
        self._make()

    def _make(self) -> ResidualAttention:
        return ResidualAttention(self.alpha, self.mode != 'fixed', self.bounded)

    @property
    def carries(self) -> bool:
        """Whether scores have to be carried from block to block."""
        return self.mode != 'fixed' or self.alpha != 1

    def shared(self) -> ResidualAttention | None:
        """A new gate for all blocks together; None if each has its own."""
        return None if self.mode == 'block' else self._make()

    def own(self) -> ResidualAttention | None:
        """A new gate for one block that mixes; None if all share one."""
        return self._make() if self.mode == 'block' else None
