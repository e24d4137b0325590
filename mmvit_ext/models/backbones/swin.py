"""Swin's pyramid of window attention, with residual attention or augmented shortcuts.

Methods: ReViT, "Enhancing Vision Transformers with Residual Attention" (arXiv 2402.11301), and
"Augmented Shortcuts for Vision Transformers" (arXiv 2106.15941), on Swin, "Hierarchical Vision
Transformer using Shifted Windows" (arXiv 2103.14030). Origin of the methods' code: ADiko1997/ReViT
(``model/reswin.py``), huawei-noah/Efficient-AI-Backbones (``augvit_pytorch``),
microsoft/Swin-Transformer.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from mmvit_ext.registry import MODELS

from ..layers import (
    Gates,
    Mlp,
    ResidualAttention,
    Shortcuts,
    TransformerBlock,
    full_precision,
    pad_to_multiple,
    relative_position_index,
    resize_bias_table,
    shift_mask,
    window_partition,
    window_reverse,
)
from .base import PyramidBackbone, Stage, drop_path_rates, resolve_arch


class WindowAttention(nn.Module):
    """Multi-head attention within windows, with relative position bias and carried scores.

    The scores of an image travel as (N, windows * heads, tokens, tokens), windows first: mixed
    after the bias is added and before the shift mask is, as in ADiko1997/ReViT.

    Args:
        dim: Channels.
        num_heads: Attention heads.
        window: Side of a window, in tokens.
        qkv_bias: Whether queries, keys and values have a bias.
        qk_scale: Factor of the products; default head_dim ** -0.5.
        attn_drop_rate: Dropout of the attention weights.
        drop_rate: Dropout of the output.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        window: int,
        qkv_bias: bool,
        qk_scale: float | None,
        attn_drop_rate: float,
        drop_rate: float,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.window = window
        self.scale = qk_scale or (dim // num_heads) ** -0.5
        self.relative_position_bias_table = nn.Parameter(
            torch.zeros((2 * window - 1) ** 2, num_heads)
        )
        index = relative_position_index(window).flatten()
        self.register_buffer('relative_position_index', index, persistent=False)
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.attn_drop = nn.Dropout(attn_drop_rate)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(drop_rate)
        self.register_load_state_dict_pre_hook(_fit_bias_table)

    def forward(
        self,
        x: Tensor,
        images: int,
        residual: ResidualAttention | None = None,
        carried: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attends within each window.

        Args:
            x: (N * windows, tokens, C), the windows of N images.
            images: N.
            residual: The gate; None where nothing is mixed.
            carried: Scores of the layer before, (N, any, tokens, tokens), or None.
            mask: Added to the scores before softmax, (windows, tokens, tokens), or None.

        Returns:
            The output, shaped as x, and the mixed scores,
            (N, windows * heads, tokens, tokens), in float32 at least.
        """
        b, tokens, c = x.shape
        # (B, tokens, 3C) -> 3 x (B, heads, tokens, head_dim)
        qkv = self.qkv(x).view(b, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        # Scaling before the product keeps half precision from overflowing.
        scores = full_precision((q * self.scale) @ k.transpose(-2, -1)).add_(self._bias())
        # (B, heads, tokens, tokens) -> (N, windows * heads, tokens, tokens)
        scores = scores.view(images, -1, tokens, tokens)
        if residual is not None and carried is not None:
            scores = residual.mix_(scores, fit_windows(carried, scores.shape[1]))
        logits = scores
        if mask is not None:
            # (N, windows, heads, tokens, tokens) + (windows, 1, tokens, tokens)
            logits = scores.view(images, -1, self.num_heads, tokens, tokens) + mask[:, None]
        weights = self.attn_drop(logits.view(b, -1, tokens, tokens).softmax(dim=-1))
        # (B, heads, tokens, head_dim) -> (B, tokens, C)
        out = (weights.to(v.dtype) @ v).transpose(1, 2).reshape(b, tokens, c)
        return self.proj_drop(self.proj(out)), scores

    def _bias(self) -> Tensor:
        """(heads, tokens, tokens): the table's row for each pair of tokens."""
        bias = self.relative_position_bias_table[self.relative_position_index]
        # (tokens * tokens, heads) -> (heads, tokens, tokens)
        return bias.view(self.window**2, self.window**2, -1).permute(2, 0, 1)


def fit_windows(carried: Tensor, count: int) -> Tensor:
    """Brings carried scores to another number of windows times heads.

    The authors' rule (ADiko1997/ReViT, ``model/reswin.py``): nearest neighbour along the joined
    axis, target index t reading source index floor(t * source / target), here in whole numbers.

    Args:
        carried: (N, windows * heads, tokens, tokens) of the layer before.
        count: Windows times heads of this layer.

    Returns:
        (N, count, tokens, tokens).
    """
    source = carried.shape[1]
    if source == count:
        return carried
    index = torch.arange(count, device=carried.device) * source // count
    return carried.index_select(1, index)


def _fit_bias_table(attention: WindowAttention, state_dict: dict, prefix: str, *_) -> None:
    """Before loading: resamples a table of another window, drops stored index tables."""
    state_dict.pop(prefix + 'relative_position_index', None)
    key = prefix + 'relative_position_bias_table'
    table = state_dict.get(key)
    if table is not None and table.shape[0] != (2 * attention.window - 1) ** 2:
        state_dict[key] = resize_bias_table(table, attention.window)


class SwinBlock(TransformerBlock):
    """A block that attends within windows, regular or shifted by half their side.

    Args:
        shifted: Whether windows are shifted.
        dim: Channels.
        attn: The attention.
        *args: The other arguments of :class:`TransformerBlock`.
    """

    def __init__(self, shifted: bool, dim: int, attn: WindowAttention, *args: Any) -> None:
        super().__init__(dim, attn, *args)
        self.shift = attn.window // 2 if shifted else 0

    def attend(
        self, x: Tensor, residual: ResidualAttention | None, carried: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Cuts (N, H, W, C) into windows, attends within each, and puts them together again."""
        n, h, w, _ = x.shape
        window = self.attn.window
        # One window across a side: the authors and timm do not shift then, mmdet does.
        shift = self.shift if min(h, w) > window else 0
        x = pad_to_multiple(x, window, channels_last=True)
        padded_h, padded_w = x.shape[1:3]
        mask = None
        if shift:
            x = x.roll((-shift, -shift), dims=(1, 2))
            mask = shift_mask(x, window, shift)
        windows = window_partition(x, window)
        windows, scores = self.attn(windows, n, residual, carried, mask)
        x = window_reverse(windows, window, padded_h, padded_w)
        if shift:
            x = x.roll((shift, shift), dims=(1, 2))
        return x[:, :h, :w], scores


class PatchMerging(nn.Module):
    """Joins 2x2 neighbours, LayerNorm, then a linear layer without bias.

    The four neighbours stand in the order (0, 0), (1, 0), (0, 1), (1, 1) of (row, column), each
    with all its channels, as in microsoft/Swin-Transformer and timm (mmdet interleaves them).
    """

    def __init__(self, dim: int, out_dim: int, norm: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim) if norm else nn.Identity()
        self.reduction = nn.Linear(4 * dim, out_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, H, W, C) -> (N, ceil(H / 2), ceil(W / 2), out_dim)."""
        x = pad_to_multiple(x, 2, channels_last=True)
        n, h, w, c = x.shape
        # (N, H/2, row, W/2, column, C) -> (N, H/2, W/2, column, row, C)
        x = x.view(n, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 4, 2, 5)
        return self.reduction(self.norm(x.reshape(n, h // 2, w // 2, 4 * c)))


class PatchEmbed(nn.Module):
    """A convolution over patches, then LayerNorm; channels last."""

    def __init__(self, in_channels: int, dim: int, patch: int, norm: bool) -> None:
        super().__init__()
        self.proj = nn.Conv2d(in_channels, dim, kernel_size=patch, stride=patch)
        self.norm = nn.LayerNorm(dim) if norm else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """(N, in_channels, H, W) -> (N, ceil(H / patch), ceil(W / patch), C)."""
        x = self.proj(pad_to_multiple(x, self.proj.stride[0]))
        return self.norm(x.permute(0, 2, 3, 1))


def _arch(dim: int, depths: Sequence[int], num_heads: Sequence[int]) -> dict:
    return {
        'embed_dims': dim,
        'depths': tuple(depths),
        'num_heads': tuple(num_heads),
        'mlp_ratio': 4,
    }


class SwinPyramid(PyramidBackbone):
    """Swin (arXiv 2103.14030), open to residual attention and augmented shortcuts.

    Takes images of any size, (N, in_channels, H, W), and returns a tuple of contiguous maps,
    (N, C_i, ceil(H / s), ceil(W / s)) with strides s of 4, 8, 16, 32.

    A map of which one side is not larger than the window is attended to without a shift, as the
    authors and timm do; mmdet's Swin shifts all the same.

    Args:
        arch: 'tiny', 'small', 'base', 'nano'; or a dict with ``embed_dims``, ``depths``,
            ``num_heads`` and ``mlp_ratio``.
        gates: The gates of residual attention; by default there is none.
        cross_stage: What a stage does with the last stage's scores, which have another number of
            windows and heads: 'nearest' or 'reset' (starts anew).
        shortcuts: The shortcuts of the blocks; plain by default.
        in_channels: Channels of the image.
        embed_dims: Channels of the first stage, doubled in each further one. Default: the arch's.
        patch_size: Side of a patch and stride of the first map, in pixels.
        window_size: Side of a window, in tokens.
        mlp_ratio: Expansion of the MLP. Default: the arch's.
        depths: Blocks of each stage. Default: the arch's.
        num_heads: Attention heads of each stage. Default: the arch's.
        qkv_bias: Whether queries, keys and values have a bias.
        qk_scale: Factor of the products; default head_dim ** -0.5.
        patch_norm: LayerNorm in patch embedding and patch merging.
        drop_rate: Dropout after the position embedding, in the MLP and after attention.
        attn_drop_rate: Dropout of the attention weights.
        drop_path_rate: Stochastic depth rate of the last block, rising from 0.
        use_abs_pos_embed: Adds a learned absolute position embedding, resampled to any map.
        pretrain_img_size: Image side, or height and width, that the absolute embedding is for.
        out_indices: Stages whose maps are returned, ascending.
        frozen_stages: -1 freezes nothing, 0 the patch embedding, k also the first k stages and
            their output norms (mmdet's meaning).
        norm_eval: Keeps batch norms in eval mode while training; LayerNorm has no such mode.
        with_cp: Recomputes blocks in the backward pass to save memory.
        convert_weights: Accepted from configs of mmdet's Swin; foreign checkpoints are always
            recognised by their keys, whatever the value.
        init_cfg: mmengine's initialisation config.

    Raises:
        ValueError: On an unknown arch, or settings that do not fit together.
    """

    arch_zoo = {
        'nano': _arch(48, (2, 2, 2, 2), (3, 6, 12, 24)),
        'tiny': _arch(96, (2, 2, 6, 2), (3, 6, 12, 24)),
        'small': _arch(96, (2, 2, 18, 2), (3, 6, 12, 24)),
        'base': _arch(128, (2, 2, 18, 2), (4, 8, 16, 32)),
    }

    def __init__(
        self,
        arch: str | dict = 'tiny',
        gates: Gates = Gates(),  # noqa: B008  frozen
        cross_stage: str = 'nearest',
        shortcuts: Shortcuts = Shortcuts(),  # noqa: B008  frozen
        in_channels: int = 3,
        embed_dims: int | None = None,
        patch_size: int = 4,
        window_size: int = 7,
        mlp_ratio: float | None = None,
        depths: Sequence[int] | None = None,
        num_heads: Sequence[int] | None = None,
        qkv_bias: bool = True,
        qk_scale: float | None = None,
        patch_norm: bool = True,
        drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        drop_path_rate: float = 0.1,
        use_abs_pos_embed: bool = False,
        pretrain_img_size: int | Sequence[int] = 224,
        out_indices: Sequence[int] = (0, 1, 2, 3),
        frozen_stages: int = -1,
        norm_eval: bool = False,
        with_cp: bool = False,
        convert_weights: bool = True,
        init_cfg: dict | None = None,
    ) -> None:
        name = type(self).__name__
        settings = resolve_arch(
            name,
            arch,
            self.arch_zoo,
            {
                'embed_dims': embed_dims,
                'depths': depths,
                'num_heads': num_heads,
                'mlp_ratio': mlp_ratio,
            },
        )
        dim, depths, num_heads = (settings[k] for k in ('embed_dims', 'depths', 'num_heads'))
        dims = [dim * 2**i for i in range(len(depths))]
        if cross_stage not in ('nearest', 'reset'):
            raise ValueError(f"{name}: cross_stage='{cross_stage}': choose from nearest, reset")
        for width, heads in zip(dims, num_heads):
            if width % heads:
                raise ValueError(f'{name}: {width} channels do not divide into {heads} heads')
        super().__init__(dims, depths, out_indices, frozen_stages, norm_eval, with_cp, init_cfg)
        self.cross_stage = cross_stage

        self.patch_embed = PatchEmbed(in_channels, dim, patch_size, patch_norm)
        if use_abs_pos_embed:
            self._add_absolute_pos_embed(dim, pretrain_img_size, patch_size, 'pretrain_img_size')
        self.use_abs_pos_embed = use_abs_pos_embed
        self.drop_after_pos = nn.Dropout(drop_rate)
        places = [(s, i) for s in range(len(self.dims)) for i in range(depths[s])]
        # a gate that no block uses would never get a gradient
        mixes = any(self._mixes(*place) for place in places)
        self.residual = gates.shared() if mixes else None
        self.carries = gates.carries

        def block(stage: int, i: int, rate: float) -> SwinBlock:
            width, heads = self.dims[stage], num_heads[stage]
            attn = WindowAttention(
                width, heads, window_size, qkv_bias, qk_scale, attn_drop_rate, drop_rate
            )
            own = gates.own() if self._mixes(stage, i) else None
            mlp = Mlp(width, int(width * settings['mlp_ratio']), nn.GELU(), drop_rate)
            made = shortcuts.make(width)
            return SwinBlock(i % 2 == 1, width, attn, mlp, nn.LayerNorm, own, made, rate)

        rates = drop_path_rates(drop_path_rate, depths)
        self.stages = nn.ModuleList()
        for stage, width in enumerate(self.dims):
            blocks = [block(stage, i, rate) for i, rate in enumerate(rates[stage])]
            last = stage == len(self.dims) - 1
            downsample = None if last else PatchMerging(width, self.dims[stage + 1], patch_norm)
            self.stages.append(Stage(blocks, downsample))
        self._add_output_norms(nn.LayerNorm)
        self._freeze()

    def _mixes(self, stage: int, block: int) -> bool:
        """Whether carried scores ever reach a block."""
        first_of_chain = block == 0 and (stage == 0 or self.cross_stage == 'reset')
        return not first_of_chain

    def _frozen_modules(self) -> list[nn.Module]:
        modules = super()._frozen_modules()
        return [*modules, self.drop_after_pos] if modules else []

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Computes the maps.

        Args:
            x: Images, (N, in_channels, H, W), any H, W >= 1.

        Returns:
            The maps of ``out_indices``, (N, C_i, ceil(H / s_i), ceil(W / s_i)).
        """
        x = self.patch_embed(x)
        if self.use_abs_pos_embed:
            x = self._with_position(x)
        x = self.drop_after_pos(x)
        outs, carried = [], None
        for i, stage in enumerate(self.stages):
            if self.cross_stage == 'reset':
                carried = None
            for block in stage.blocks:
                x, scores = self._run(block, x, carried, self.residual)
                carried = scores if self.carries else None
            if i in self.out_indices:
                outs.append(self._output(i, x))
            if stage.downsample is not None:
                x = stage.downsample(x)
        return tuple(outs)

    def _output(self, i: int, x: Tensor) -> Tensor:
        # (N, H, W, C) -> (N, C, H, W)
        return getattr(self, f'norm{i}')(x).permute(0, 3, 1, 2).contiguous()


@MODELS.register_module()
class ReSwin(SwinPyramid):
    """Swin with residual attention (arXiv 2402.11301).

    The scores of each block are mixed with those of the block before it,
    ``S_l = alpha * scores_l + (1 - alpha) * S_{l-1}``; ``alpha=1`` is plain Swin.

    Args:
        arch: 'tiny', 'small', 'base', 'nano'; or a dict, see :class:`SwinPyramid`.
        alpha: Share of a block's own scores: the value if fixed, the start if learnable.
        alpha_mode: 'fixed' (the authors' ReSwin, at 0.5), 'shared' (one parameter for the whole
            network; frozen as soon as a stage is) or 'block' (one for each block that mixes).
        alpha_bounded: Keeps a learnable alpha in (0, 1) through a sigmoid.
        cross_stage: What a stage does with the last stage's scores: 'nearest' (the authors' rule)
            or 'reset' (starts anew).
        **kwargs: All other arguments of :class:`SwinPyramid`.

    Example:
        >>> import torch
        >>> from mmvit_ext.models import ReSwin
        >>> model = ReSwin('nano')
        >>> [tuple(m.shape) for m in model(torch.rand(1, 3, 65, 97))]
        [(1, 48, 17, 25), (1, 96, 9, 13), (1, 192, 5, 7), (1, 384, 3, 4)]
    """

    def __init__(
        self,
        arch: str | dict = 'tiny',
        alpha: float = 0.5,
        alpha_mode: str = 'fixed',
        alpha_bounded: bool = False,
        cross_stage: str = 'nearest',
        **kwargs: Any,
    ) -> None:
        gates = Gates(alpha, alpha_mode, alpha_bounded)
        super().__init__(arch, gates=gates, cross_stage=cross_stage, **kwargs)


@MODELS.register_module()
class AugSwin(SwinPyramid):
    """Swin with augmented shortcuts (arXiv 2106.15941).

    Around attention and around the MLP, learnable paths stand beside the identity,
    ``z' = s * (z + f(u) + sum_i T_i(u))`` with u the normalised z. They see the whole map, so
    windows do not matter to them. ``num_paths=0`` is plain Swin.

    Args:
        arch: 'tiny', 'small', 'base', 'nano'; or a dict, see :class:`SwinPyramid`.
        num_paths: Paths beside the identity at each place, 0 to 4.
        where: Place of the paths: 'msa' (attention), 'mlp' or 'both'.
        projection: Form of a path's matrix: 'circulant' (blocks that are circulant) or 'linear'.
        num_blocks: Circulant blocks a side of the matrix; has to divide the channels.
        act: Activation of the paths by its name in mmcv, or 'none'. Default: none with one path,
            GELU with more.
        scale: The factor s. Default: 1 with one path, 3/4 with more.
        **kwargs: All other arguments of :class:`SwinPyramid`.

    Example:
        >>> import torch
        >>> from mmvit_ext.models import AugSwin
        >>> model = AugSwin('nano')
        >>> [tuple(m.shape) for m in model(torch.rand(1, 3, 65, 97))]
        [(1, 48, 17, 25), (1, 96, 9, 13), (1, 192, 5, 7), (1, 384, 3, 4)]
    """

    def __init__(
        self,
        arch: str | dict = 'tiny',
        num_paths: int = 2,
        where: str = 'both',
        projection: str = 'circulant',
        num_blocks: int = 4,
        act: str | None = None,
        scale: float | None = None,
        **kwargs: Any,
    ) -> None:
        shortcuts = Shortcuts(num_paths, where, projection, num_blocks, act, scale)
        super().__init__(arch, shortcuts=shortcuts, **kwargs)
