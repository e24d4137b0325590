"""ShiftViT: a pyramid of blocks whose token mixing is a shift of channels.

Method: "When Shift Operation Meets Vision Transformer: An Extremely Simple Alternative to
Attention Mechanism" (arXiv 2201.10801). Origin of the method's code: microsoft/SPACH
(``models/shiftvit.py``, ``models/registry.py``).
"""

from collections.abc import Sequence
from functools import partial

import torch.nn as nn
from mmcv.cnn import build_activation_layer, build_norm_layer
from mmcv.cnn.bricks import DropPath
from torch import Tensor

from mmvit_ext.registry import MODELS

from ..layers import Mlp, pad_to_multiple, shift_channels
from .base import PyramidBackbone, Stage, drop_path_rates, resolve_arch

pointwise = partial(nn.Conv2d, kernel_size=1)


class ShiftBlock(nn.Module):
    """``y = shift(x); out = y + DropPath(MLP(norm(y)))``: the residual starts after the shift.

    Args:
        dim: Channels.
        group: Channels that move in each of the four directions.
        shift_pixels: How far they move.
        mlp_ratio: Expansion of the MLP (tau in the paper).
        drop_path_rate: Stochastic depth rate.
        norm_cfg: Norm layer, GN with one group as the authors have it.
        act_cfg: Activation of the MLP.
    """

    def __init__(
        self,
        dim: int,
        group: int,
        shift_pixels: int,
        mlp_ratio: float,
        drop_path_rate: float,
        norm_cfg: dict,
        act_cfg: dict,
    ) -> None:
        super().__init__()
        self.group = group
        self.shift_pixels = shift_pixels
        self.norm = build_norm_layer(norm_cfg, dim)[1]
        act = build_activation_layer(act_cfg)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), act, projection=pointwise)
        self.drop_path = DropPath(drop_path_rate)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, C, H, W) to the same shape."""
        x = shift_channels(x, self.group, self.shift_pixels)
        return x + self.drop_path(self.mlp(self.norm(x)))

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f'group={self.group}, shift_pixels={self.shift_pixels}'


class ConvDownsample(nn.Module):
    """Norm, then a 2x2 convolution of stride 2 without bias; odd maps are padded in between."""

    def __init__(self, dim: int, out_dim: int, norm_cfg: dict) -> None:
        super().__init__()
        self.norm = build_norm_layer(norm_cfg, dim)[1]
        self.reduction = nn.Conv2d(dim, out_dim, kernel_size=2, stride=2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, out_dim, ceil(H / 2), ceil(W / 2))."""
        return self.reduction(pad_to_multiple(self.norm(x), 2))


class ConvPatchEmbed(nn.Module):
    """A 4x4 convolution of stride 4, then the norm."""

    def __init__(self, in_channels: int, dim: int, patch: int, norm_cfg: dict) -> None:
        super().__init__()
        self.proj = nn.Conv2d(in_channels, dim, kernel_size=patch, stride=patch)
        self.norm = build_norm_layer(norm_cfg, dim)[1]

    def forward(self, x: Tensor) -> Tensor:
        """(N, in_channels, H, W) -> (N, C, ceil(H / patch), ceil(W / patch))."""
        return self.norm(self.proj(pad_to_multiple(x, self.proj.stride[0])))


def _arch(dim: int, depths: Sequence[int], tau: int, n_div: int, drop_path_rate: float) -> dict:
    return {
        'embed_dims': dim,
        'depths': tuple(depths),
        'mlp_ratio': tau,
        'n_div': n_div,
        'drop_path_rate': drop_path_rate,
    }


@MODELS.register_module()
class ShiftViT(PyramidBackbone):
    """ShiftViT (arXiv 2201.10801): Swin's pyramid with a shift in the place of attention.

    Takes images of any size, (N, in_channels, H, W), and returns a tuple of contiguous maps,
    (N, C_i, ceil(H / s), ceil(W / s)) with strides s of 4, 8, 16, 32; a map whose side is odd is
    padded at the right and bottom before the next stage.

    Args:
        arch: 'tiny', 'small', 'base' (the paper's models), 'light-tiny|small|base',
            'r4-tiny|small|base' (twice the expansion, fewer blocks), 'nano'; or a dict with
            ``embed_dims``, ``depths``, ``mlp_ratio``, ``n_div`` and ``drop_path_rate``.
        in_channels: Channels of the image.
        embed_dims: Channels of the first stage, doubled in each further one. Default: the arch's.
        patch_size: Side of a patch and stride of the first map, in pixels.
        depths: Blocks of each stage. Default: the arch's.
        mlp_ratio: Expansion tau of the MLP. Default: the arch's.
        n_div: Each direction moves channels // n_div channels, so 4 / n_div of all of them move.
            Default: the arch's.
        shift_pixels: How far channels move; 0 is the ablation without token mixing.
        drop_path_rate: Stochastic depth rate of the last block. Default: the arch's.
        norm_cfg: Norm layer everywhere: GN with one group (over channels and pixels of an image
            together), or BN for the ablation.
        act_cfg: Activation in the MLP: GELU, or ReLU for the ablation.
        out_indices: Stages whose maps are returned, ascending.
        frozen_stages: -1 freezes nothing, 0 the patch embedding, k also the first k stages and
            their output norms (mmdet's meaning).
        norm_eval: Keeps batch norms in eval mode while training.
        with_cp: Recomputes blocks in the backward pass to save memory.
        init_cfg: mmengine's initialisation config.

    Raises:
        ValueError: On an unknown arch, or settings that do not fit together.

    Example:
        >>> import torch
        >>> from mmvit_ext.models import ShiftViT
        >>> model = ShiftViT('nano')
        >>> [tuple(m.shape) for m in model(torch.rand(1, 3, 65, 97))]
        [(1, 48, 17, 25), (1, 96, 9, 13), (1, 192, 5, 7), (1, 384, 3, 4)]
    """

    trunc_normal_layers = (nn.Linear, nn.Conv2d)
    arch_zoo = {
        'nano': _arch(48, (2, 2, 4, 2), 2, 12, 0.1),
        'tiny': _arch(96, (6, 8, 18, 6), 2, 12, 0.2),
        'small': _arch(96, (10, 18, 36, 10), 2, 12, 0.4),
        'base': _arch(128, (10, 18, 36, 10), 2, 16, 0.6),
        'light-tiny': _arch(96, (2, 2, 6, 2), 4, 12, 0.2),
        'light-small': _arch(96, (2, 2, 18, 2), 4, 12, 0.4),
        'light-base': _arch(128, (2, 2, 18, 2), 4, 16, 0.5),
        'r4-tiny': _arch(96, (2, 2, 12, 3), 4, 12, 0.2),
        'r4-small': _arch(96, (2, 6, 24, 4), 4, 12, 0.4),
        'r4-base': _arch(128, (4, 6, 22, 4), 4, 16, 0.5),
    }

    def __init__(
        self,
        arch: str | dict = 'tiny',
        in_channels: int = 3,
        embed_dims: int | None = None,
        patch_size: int = 4,
        depths: Sequence[int] | None = None,
        mlp_ratio: float | None = None,
        n_div: int | None = None,
        shift_pixels: int = 1,
        drop_path_rate: float | None = None,
        norm_cfg: dict | None = None,
        act_cfg: dict | None = None,
        out_indices: Sequence[int] = (0, 1, 2, 3),
        frozen_stages: int = -1,
        norm_eval: bool = False,
        with_cp: bool = False,
        init_cfg: dict | None = None,
    ) -> None:
        settings = resolve_arch(
            'ShiftViT',
            arch,
            self.arch_zoo,
            {
                'embed_dims': embed_dims,
                'depths': depths,
                'mlp_ratio': mlp_ratio,
                'n_div': n_div,
                'drop_path_rate': drop_path_rate,
            },
        )
        dim, depths, n_div = settings['embed_dims'], settings['depths'], settings['n_div']
        if not 4 <= n_div <= dim:
            raise ValueError(
                f'ShiftViT: n_div={n_div}: four groups of {dim} // n_div channels move, so n_div '
                f'lies in 4..{dim}'
            )
        if shift_pixels < 0:
            raise ValueError(f'ShiftViT: shift_pixels={shift_pixels}: give 0 or more pixels')
        dims = [dim * 2**i for i in range(len(depths))]
        super().__init__(dims, depths, out_indices, frozen_stages, norm_eval, with_cp, init_cfg)
        norm_cfg = norm_cfg or {'type': 'GN', 'num_groups': 1}
        act_cfg = act_cfg or {'type': 'GELU'}

        self.patch_embed = ConvPatchEmbed(in_channels, dim, patch_size, norm_cfg)
        self.stages = nn.ModuleList()
        rates = drop_path_rates(settings['drop_path_rate'], depths)
        for i, width in enumerate(self.dims):
            blocks = [
                ShiftBlock(
                    width,
                    width // n_div,
                    shift_pixels,
                    settings['mlp_ratio'],
                    rate,
                    norm_cfg,
                    act_cfg,
                )
                for rate in rates[i]
            ]
            last = i == len(self.dims) - 1
            downsample = None if last else ConvDownsample(width, self.dims[i + 1], norm_cfg)
            self.stages.append(Stage(blocks, downsample))
        self._add_output_norms(lambda width: build_norm_layer(norm_cfg, width)[1])
        self._freeze()

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Computes the maps.

        Args:
            x: Images, (N, in_channels, H, W), any H, W >= 1.

        Returns:
            The maps of ``out_indices``, (N, C_i, ceil(H / s_i), ceil(W / s_i)).
        """
        x = self.patch_embed(x)
        outs = []
        for i, stage in enumerate(self.stages):
            for block in stage.blocks:
                x = self._run(block, x)
            if i in self.out_indices:
                outs.append(self._output(i, x))
            if stage.downsample is not None:
                x = stage.downsample(x)
        return tuple(outs)
