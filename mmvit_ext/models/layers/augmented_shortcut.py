"""Augmented shortcuts: learnable paths beside the identity keep tokens of a deep network apart.

Method: "Augmented Shortcuts for Vision Transformers" (arXiv 2106.15941), equations 5 to 7. Origin
of the method's code: huawei-noah/Efficient-AI-Backbones (``augvit_pytorch/models/augvit.py``).
"""

from dataclasses import dataclass

import torch.nn as nn
from mmcv.cnn import build_activation_layer
from torch import Tensor

from .circulant import BlockCirculant

PLACES = {'msa': (True, False), 'mlp': (False, True), 'both': (True, True)}


class AugmentedShortcut(nn.Module):
    """``s * (z + out + sum_i T_i(u))`` with ``T_i(u) = act(P_i u + b_i)``.

    Stands where a block adds the output of its attention or MLP to its input. Without paths it
    is the plain shortcut ``z + out``.

    Args:
        dim: Channels.
        num_paths: Paths T beside the identity.
        projection: Form of P_i: 'circulant' (blocks that are circulant) or 'linear'.
        num_blocks: Blocks b a side of a circulant P_i, each of side dim / b.
        act: Activation by its name in mmcv, such as 'GELU', or 'none'. Default, as the authors
            have it: none with one path, GELU with more.
        scale: The factor s. Default, as the authors have it: 1 with one path, 3/4 with more.

    Raises:
        ValueError: If a setting is out of range.
    """

    def __init__(
        self,
        dim: int,
        num_paths: int = 2,
        projection: str = 'circulant',
        num_blocks: int = 4,
        act: str | None = None,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= num_paths <= 4:
            raise ValueError(f'num_paths={num_paths}: choose 0 (the plain shortcut) to 4')
        if projection not in ('circulant', 'linear'):
            raise ValueError(f"projection='{projection}': choose from circulant, linear")
        if num_blocks < 1 or dim % num_blocks:
            raise ValueError(f'num_blocks={num_blocks}: {dim} channels do not divide into them')
        several = num_paths > 1
        self.num_paths = num_paths
        self.scale = scale if scale is not None else (0.75 if several else 1.0)
        self.projection, self.act = None, None
        if num_paths == 0:
            return
        act = act or ('GELU' if several else 'none')
        self.act = nn.Identity() if act == 'none' else build_activation_layer({'type': act})
        # all paths are rows of one matrix: one product computes them
        width = num_paths * dim
        if projection == 'linear':
            self.projection = nn.Linear(dim, width)
        else:
            self.projection = BlockCirculant(dim, width, dim // num_blocks)

    def forward(self, z: Tensor, u: Tensor, out: Tensor) -> Tensor:
        """Adds up identity, output and paths.

        Args:
            z: Input of the block, (..., C).
            u: The same behind its norm, (..., C): what the paths see.
            out: Output of attention or MLP, after stochastic depth, (..., C).

        Returns:
            (..., C).
        """
        total = z + out
        if self.num_paths == 1:
            total = total + self.act(self.projection(u))
        elif self.num_paths > 1:
            # (..., T * C) -> (..., T, C), summed over the paths
            paths = self.act(self.projection(u)).unflatten(-1, (self.num_paths, -1))
            total = total + paths.sum(dim=-2)
        return total if self.scale == 1 else total * self.scale

    def begin_plain(self) -> None:
        """Starts the paths at zero, so that the block computes what the plain one does.

        They still learn: with GELU or no activation the gradient at zero is not zero.

        Raises:
            ValueError: If the scale is not 1, which no start of the paths makes up for.
        """
        if self.scale != 1:
            raise ValueError(
                f'scale={self.scale}: a scaled shortcut cannot begin as the plain one; set scale=1'
            )
        if self.projection is not None:
            nn.init.zeros_(self.projection.weight)
            nn.init.zeros_(self.projection.bias)

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f'num_paths={self.num_paths}, scale={self.scale}'


@dataclass(frozen=True)
class Shortcuts:
    """The two shortcuts of each block of a network: around attention and around the MLP.

    Attributes:
        num_paths: Paths beside the identity, 0 to 4; 0 is the plain network.
        where: Place of the paths: 'msa' (attention), 'mlp' or 'both'.
        projection: 'circulant' or 'linear'.
        num_blocks: Circulant blocks a side.
        act: Activation of the paths; None for the authors' choice.
        scale: Factor of the sum; None for the authors' choice.

    Raises:
        ValueError: If the place is unknown.
    """

    num_paths: int = 0
    where: str = 'both'
    projection: str = 'circulant'
    num_blocks: int = 4
    act: str | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        if self.where not in PLACES:
            raise ValueError(f"where='{self.where}': choose from {', '.join(PLACES)}")

    def make(self, dim: int) -> tuple[AugmentedShortcut, AugmentedShortcut]:
        """New shortcuts of one block of ``dim`` channels; plain where there are no paths."""
        return tuple(
            AugmentedShortcut(
                dim, self.num_paths, self.projection, self.num_blocks, self.act, self.scale
            )
            if augmented and self.num_paths
            else AugmentedShortcut(dim, 0, num_blocks=1)
            for augmented in PLACES[self.where]
        )
