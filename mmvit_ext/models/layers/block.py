"""The transformer block: attention, then the MLP, each behind a norm and beside a shortcut."""

from collections.abc import Callable

import torch.nn as nn
from mmcv.cnn.bricks import DropPath
from torch import Tensor

from .augmented_shortcut import AugmentedShortcut
from .mlp import Mlp
from .residual_attention import ResidualAttention
from .score_factors import Scores

# scores in the form that the attention of the block takes and gives
Carried = Tensor | Scores


class TransformerBlock(nn.Module):
    """A pre-norm block whose attention may mix carried scores, with shortcuts of any kind.

    Args:
        dim: Channels.
        attn: The attention; called by :meth:`attend`.
        mlp: The MLP.
        norm: Maker of a norm, called with the channels.
        residual: A gate of this block's own, or None if it mixes with a shared one or not at all.
        shortcuts: Around attention and around the MLP.
        drop_path_rate: Stochastic depth rate.
    """

    def __init__(
        self,
        dim: int,
        attn: nn.Module,
        mlp: Mlp,
        norm: Callable[[int], nn.Module],
        residual: ResidualAttention | None,
        shortcuts: tuple[AugmentedShortcut, AugmentedShortcut],
        drop_path_rate: float,
    ) -> None:
        super().__init__()
        self.norm1 = norm(dim)
        self.attn = attn
        self.residual = residual
        self.norm2 = norm(dim)
        self.mlp = mlp
        self.drop_path = DropPath(drop_path_rate)
        self.shortcut1, self.shortcut2 = shortcuts

    def forward(
        self, x: Tensor, carried: Carried | None, shared: ResidualAttention | None
    ) -> tuple[Tensor, Carried | None]:
        """Runs the block.

        Args:
            x: Tokens or a map, channels last.
            carried: Scores of the block before, or None.
            shared: The gate that all blocks share, or None.

        Returns:
            The new x, and this block's mixed scores; None where attention keeps none.
        """
        u = self.norm1(x)
        out, scores = self.attend(u, self.residual or shared, carried)
        x = self.shortcut1(x, u, self.drop_path(out))
        u = self.norm2(x)
        return self.shortcut2(x, u, self.drop_path(self.mlp(u))), scores

    def attend(
        self, u: Tensor, residual: ResidualAttention | None, carried: Carried | None
    ) -> tuple[Tensor, Carried | None]:
        """Attention over normalised x: its output, shaped as u, and the mixed scores."""
        return self.attn(u, residual, carried)
