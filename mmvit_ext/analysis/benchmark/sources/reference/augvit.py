"""Aug-ViT as the authors compute it: each path multiplies by its circulant matrix, built anew.

Method: "Augmented Shortcuts for Vision Transformers" (arXiv 2106.15941), form 'circulant2' of
huawei-noah/Efficient-AI-Backbones (``augvit_pytorch``), written anew in plain torch; on purpose it
shares nothing with the package's AugViT.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

# The factor of the sum of two paths; blocks a side of their matrices; side of a patch, in pixels.
SCALE, BLOCKS, PATCH = 0.75, 4, 16


class CirculantPath(nn.Module):
    """``GELU(P u + b)``, with the matrix P put together in each forward pass."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        side = dim // BLOCKS
        self.weight = nn.Parameter(torch.empty(BLOCKS, BLOCKS, side).uniform_(-1, 1) / dim**0.5)
        self.bias = nn.Parameter(torch.zeros(dim))
        place = torch.arange(side)
        self.register_buffer('index', (place[:, None] - place) % side, persistent=False)

    def forward(self, u: Tensor) -> Tensor:
        """Maps (N, L, C) to the same shape."""
        # (b_out, b_in, k, k) -> (b_out, k, b_in, k) -> (C, C)
        matrix = self.weight[:, :, self.index].transpose(1, 2).reshape(u.shape[-1], u.shape[-1])
        return F.gelu(F.linear(u, matrix, self.bias))


class Attention(nn.Module):
    """Multi-head attention with its weights written out."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, L, C) to the same shape."""
        n, tokens, c = x.shape
        # (N, L, 3C) -> 3 x (N, heads, L, head_dim)
        qkv = self.qkv(x).reshape(n, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        weights = ((q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(n, tokens, c))


class Mlp(nn.Module):
    """Two linear layers with GELU between."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, L, C) to the same shape."""
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    """``z' = 3/4 (z + f(u) + T_1(u) + T_2(u))`` around attention, then around the MLP."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim, num_heads)
        self.paths1 = nn.ModuleList(CirculantPath(dim) for _ in range(2))
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim)
        self.paths2 = nn.ModuleList(CirculantPath(dim) for _ in range(2))

    def forward(self, z: Tensor) -> Tensor:
        """Maps (N, L, C) to the same shape."""
        u = self.norm1(z)
        z = SCALE * (z + self.attn(u) + sum(path(u) for path in self.paths1))
        u = self.norm2(z)
        return SCALE * (z + self.mlp(u) + sum(path(u) for path in self.paths2))


class PatchEmbed(nn.Module):
    """A convolution over patches."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, dim, PATCH, stride=PATCH)

    def forward(self, x: Tensor) -> Tensor:
        """(N, 3, H, W) -> (N, C, H / 16, W / 16)."""
        return self.proj(x)


class ReferenceAugViT(nn.Module):
    """Aug-ViT-S with two circulant paths, or another size; gives the map of its last block.

    Args:
        dim: Channels.
        depth: Blocks.
        num_heads: Attention heads.
        img_size: Side of the image that the position table is for, in pixels; the table is
            resampled bicubically to any other.
    """

    def __init__(
        self, dim: int = 384, depth: int = 12, num_heads: int = 6, img_size: int = 224
    ) -> None:
        super().__init__()
        grid = img_size // PATCH
        self.patch_embed = PatchEmbed(dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.cls_pos_embed = nn.Parameter(torch.zeros(1, 1, dim))
        self.absolute_pos_embed = nn.Parameter(torch.zeros(1, dim, grid, grid))
        self.blocks = nn.Sequential(*(Block(dim, num_heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """Images, (N, 3, H, W) with sides that divide by 16, to (N, C, H / 16, W / 16)."""
        x = self.patch_embed(x)
        table, grid = self.absolute_pos_embed, x.shape[2:]
        if table.shape[2:] != grid:
            table = F.interpolate(table, grid, mode='bicubic')
        tokens = (x + table).flatten(2).transpose(1, 2)
        cls = (self.cls_token + self.cls_pos_embed).expand(x.shape[0], -1, -1)
        tokens = self.norm(self.blocks(torch.cat([cls, tokens], dim=1)))
        # (N, L, C) -> (N, C, h, w)
        return tokens[:, 1:].transpose(1, 2).unflatten(2, grid).contiguous()
