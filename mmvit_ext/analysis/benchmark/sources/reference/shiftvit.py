"""ShiftViT as the authors compute it: NCHW maps, the shift as four copies into a zero tensor.

Method: "When Shift Operation Meets Vision Transformer" (arXiv 2201.10801). The way of computing
is that of microsoft/SPACH (``models/shiftvit.py``), written anew in plain torch; on purpose it
shares nothing with the package's ShiftViT but the names of the parameters.
"""

from collections.abc import Sequence

import torch
import torch.nn as nn
from torch import Tensor


class Mlp(nn.Module):
    """Two 1x1 convolutions with GELU between."""

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(dim, hidden_dim, 1)
        self.act = nn.GELU()
        self.fc2 = nn.Conv2d(hidden_dim, dim, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, C, H, W) to the same shape."""
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    """Shift, then norm and MLP beside a shortcut."""

    def __init__(self, dim: int, group: int, tau: int) -> None:
        super().__init__()
        self.group = group
        self.norm = nn.GroupNorm(1, dim)
        self.mlp = Mlp(dim, dim * tau)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, C, H, W) to the same shape."""
        x = self._shift(x)
        return x + self.mlp(self.norm(x))

    def _shift(self, x: Tensor) -> Tensor:
        g = self.group
        out = torch.zeros_like(x)
        out[:, :g, :, :-1] = x[:, :g, :, 1:]
        out[:, g : 2 * g, :, 1:] = x[:, g : 2 * g, :, :-1]
        out[:, 2 * g : 3 * g, :-1, :] = x[:, 2 * g : 3 * g, 1:, :]
        out[:, 3 * g : 4 * g, 1:, :] = x[:, 3 * g : 4 * g, :-1, :]
        out[:, 4 * g :] = x[:, 4 * g :]
        return out


class Downsample(nn.Module):
    """Norm, then a 2x2 convolution of stride 2."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(1, dim)
        self.reduction = nn.Conv2d(dim, 2 * dim, 2, stride=2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, 2C, H / 2, W / 2)."""
        return self.reduction(self.norm(x))


class PatchEmbed(nn.Module):
    """A 4x4 convolution of stride 4, then the norm."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, dim, 4, stride=4)
        self.norm = nn.GroupNorm(1, dim)

    def forward(self, x: Tensor) -> Tensor:
        """(N, 3, H, W) -> (N, C, H / 4, W / 4)."""
        return self.norm(self.proj(x))


class Stage(nn.Module):
    """Blocks, and what brings their map to the next stage; nothing in the last."""

    def __init__(self, dim: int, depth: int, group: int, tau: int, last: bool) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block(dim, group, tau) for _ in range(depth)))
        self.downsample = nn.Identity() if last else Downsample(dim)


class ReferenceShiftViT(nn.Module):
    """ShiftViT-T, or another size; four maps, each through a norm of its own.

    Args:
        dim: Channels of the first stage, doubled in each further one.
        depths: Blocks of each stage.
        tau: Expansion of the MLP.
        n_div: Each direction moves channels // n_div channels, by one pixel.
    """

    def __init__(
        self, dim: int = 96, depths: Sequence[int] = (6, 8, 18, 6), tau: int = 2, n_div: int = 12
    ) -> None:
        super().__init__()
        dims = [dim * 2**i for i in range(len(depths))]
        self.patch_embed = PatchEmbed(dim)
        self.stages = nn.ModuleList(
            Stage(width, depth, width // n_div, tau, last=width == dims[-1])
            for width, depth in zip(dims, depths)
        )
        for i, width in enumerate(dims):
            self.add_module(f'norm{i}', nn.GroupNorm(1, width))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images, (N, 3, H, W) with sides that divide by 32, to maps at strides 4 to 32."""
        x = self.patch_embed(x)
        outs = []
        for i, stage in enumerate(self.stages):
            x = stage.blocks(x)
            outs.append(getattr(self, f'norm{i}')(x))
            x = stage.downsample(x)
        return tuple(outs)
