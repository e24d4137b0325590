"""ReMViTv2: MViTv2's pyramid of pooling attention with residual attention.

Methods: ReViT, "Enhancing Vision Transformers with Residual Attention" (arXiv 2402.11301), on
MViTv2, "Improved Multiscale Vision Transformers for Classification and Detection" (arXiv
2112.01526). Origin of the methods' code: ADiko1997/ReViT (``model/attention.py``),
facebookresearch/mvit; of the windowed blocks: facebookresearch/detectron2
(``modeling/backbone/mvit.py``).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from mmcv.cnn.bricks import DropPath
from torch import Tensor

from mmvit_ext.registry import MODELS

from ..layers import (
    Gates,
    Mlp,
    Product,
    ResidualAttention,
    ScoreFactors,
    ScoreGrid,
    Scores,
    attend,
    checked_form,
    fit_factors,
    fit_scores,
    in_factors,
    pad_to_multiple,
    resize_line,
    window_partition,
    window_reverse,
)
from .base import PyramidBackbone, Stage, drop_path_rates, image_size, resolve_arch

EPS = 1e-6


@dataclass(frozen=True)
class BlockPlan:
    """What differs from block to block.

    Attributes:
        in_dim: Channels of the block's input.
        dim: Channels of its output.
        num_heads: Attention heads.
        stride_q: Stride of the pooled queries, and so of the block.
        stride_kv: Stride of the pooled keys and values.
        window: Side of a window in tokens of the block's input; 0 looks at the whole map.
        grid: Height and width of the input that the position tables are for, in tokens.
        mixes: Whether scores of the block before arrive.
        hands_on: Whether the next block takes this block's scores.
    """

    in_dim: int
    dim: int
    num_heads: int
    stride_q: int
    stride_kv: int
    window: int
    grid: tuple[int, int]
    mixes: bool = False
    hands_on: bool = False

    def output_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Height and width of the block's output for those of its input, in tokens."""
        return tuple(pooled_length(side, self.stride_q) for side in size)

    def count_scores(self, size: tuple[int, int]) -> int:
        """Scores of one image, over all heads, for an input of this height and width."""
        if self.window:
            windows = math.prod([pooled_length(side, self.window) for side in size])
            inside = (self.window // self.stride_q * (self.window // self.stride_kv)) ** 2
            return self.num_heads * windows * inside
        keys = [pooled_length(side, self.stride_kv) for side in size]
        return self.num_heads * math.prod(self.output_size(size)) * math.prod(keys)


def pooled_length(length: int, stride: int) -> int:
    """Cells of an axis behind a stride."""
    return -(-length // stride)


class PoolingAttention(nn.Module):
    """Multi-head attention over pooled queries, keys and values, with carried scores.

    The scores are mixed before the decomposed relative position term is added, as in
    ADiko1997/ReViT. The term is there added in place, so what is carried on holds it; with
    ``carry_rel_pos=False`` it does not, as the paper's equation has it.

    Within windows everything is pooled first and cut afterwards, as in detectron2; maps are padded
    to whole windows with zeros, and padded keys are not masked.

    Args:
        plan: Channels, heads, strides and window.
        qkv_bias: Whether queries, keys and values have a bias.
        carry_rel_pos: Whether carried scores hold the position term.
    """

    def __init__(self, plan: BlockPlan, qkv_bias: bool, carry_rel_pos: bool) -> None:
        super().__init__()
        self.num_heads = plan.num_heads
        self.hands_on = plan.hands_on
        self.window_q = plan.window // plan.stride_q
        self.window_kv = plan.window // plan.stride_kv
        self.carry_rel_pos = carry_rel_pos
        head_dim = plan.dim // plan.num_heads
        self.scale = head_dim**-0.5
        self.qkv = nn.Linear(plan.in_dim, 3 * plan.dim, bias=qkv_bias)
        self.proj = nn.Linear(plan.dim, plan.dim)
        self.pool_q, self.norm_q = _pool(head_dim, plan.stride_q)
        self.pool_k, self.norm_k = _pool(head_dim, plan.stride_kv)
        self.pool_v, self.norm_v = _pool(head_dim, plan.stride_kv)
        finer = min(plan.stride_q, plan.stride_kv)
        rows, columns = (2 * pooled_length(side, finer) - 1 for side in plan.grid)
        self.rel_pos_h = nn.Parameter(torch.zeros(rows, head_dim))
        self.rel_pos_w = nn.Parameter(torch.zeros(columns, head_dim))
        self.register_load_state_dict_pre_hook(_fit_tables)

    def forward(
        self,
        x: Tensor,
        residual: ResidualAttention | None = None,
        carried: Scores | None = None,
        factored: bool = False,
    ) -> tuple[Tensor, Scores | None]:
        """Attends.

        Args:
            x: (N, H, W, in_dim).
            residual: The gate; None where nothing is mixed.
            carried: Scores of the block before, or None; in factors only if the block before was
                called so.
            factored: Whether scores stay in factors, for memory.

        Returns:
            The output, (N, ceil(H / stride_q), ceil(W / stride_q), dim), and the scores to carry
            on, in float32 at least, or in factors; None if the next block takes none.
        """
        pooled, k, v = self._project(x)
        # each (B, heads, h, w, head_dim); B is N, or N * windows
        q = self._cut(pooled, self.window_q)
        k, v = self._cut(k, self.window_kv), self._cut(v, self.window_kv)
        attend = self._attend_factored if factored else self._attend_dense
        out, state = attend(q, k, v.flatten(2, 3), residual, carried)
        out = self._join(out, tuple(q.shape[2:4]), tuple(pooled.shape[1:3])) + pooled
        # (N * heads, h, w, head_dim) -> (N, h, w, heads * head_dim)
        out = out.unflatten(0, (-1, self.num_heads)).permute(0, 2, 3, 1, 4).flatten(3)
        return self.proj(out), state if self.hands_on else None

    def _attend_dense(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        residual: ResidualAttention | None,
        carried: Scores | None,
    ) -> tuple[Tensor, ScoreGrid]:
        """(B, heads, queries, head_dim) and the scores, one number a pair of tokens."""
        queries, keys = tuple(q.shape[2:4]), tuple(k.shape[2:4])
        # Scaling before the product keeps half precision from overflowing.
        own = Product(q.flatten(2, 3) * self.scale, k.flatten(2, 3), keys)
        if isinstance(carried, ScoreFactors):
            scores = self._mixed_factors(own, queries, residual, carried).dense()
        else:
            scores = own.multiplied()
            if residual is not None and carried is not None:
                carried = fit_scores(carried, self.num_heads, queries, keys)
                scores = residual.mix_(scores, carried)
        # the term is added in place: what is handed on without it needs its own tensor
        apart = self.hands_on and not self.carry_rel_pos
        # (B, heads, queries, keys) -> (B, heads, h, w, key rows, key columns)
        logits = (scores.clone() if apart else scores).view(*q.shape[:4], *keys)
        along_h, along_w = self._position_terms(q, keys)
        logits = logits.add_(along_h[..., :, None]).add_(along_w[..., None, :]).view(scores.shape)
        return weighted_values(logits, v), ScoreGrid(scores if apart else logits, queries, keys)

    def _attend_factored(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        residual: ResidualAttention | None,
        carried: ScoreFactors | None,
    ) -> tuple[Tensor, ScoreFactors]:
        """(B, heads, queries, head_dim) and the scores, in factors."""
        queries, keys = tuple(q.shape[2:4]), tuple(k.shape[2:4])
        own = Product(q.flatten(2, 3) * self.scale, k.flatten(2, 3), keys)
        scores = self._mixed_factors(own, queries, residual, carried)
        # (B, heads, h, w, cells) -> (B, heads, queries, cells)
        along_h, along_w = (term.flatten(2, 3) for term in self._position_terms(q, keys))
        logits = scores.plus(ScoreFactors((), along_h, along_w, queries, keys))
        return attend(logits, v), logits if self.carry_rel_pos else scores

    def _mixed_factors(
        self,
        own: Product,
        queries: tuple[int, int],
        residual: ResidualAttention | None,
        carried: ScoreFactors | None,
    ) -> ScoreFactors:
        scores = ScoreFactors((own,), None, None, queries, own.cells)
        if residual is None or carried is None:
            return scores
        fitted = fit_factors(carried, self.num_heads, queries, own.cells)
        return residual.mix_factors(scores, fitted)

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Pooled queries, keys and values, each (N * heads, h, w, head_dim)."""
        n, h, w, _ = x.shape
        qkv = self.qkv(x).view(n, h, w, 3, self.num_heads, -1)
        # (N, H, W, 3, heads, head_dim) -> 3 x (N * heads, head_dim, H, W), channels last in memory
        qkv = qkv.permute(3, 0, 4, 1, 2, 5).flatten(1, 2).permute(0, 1, 4, 2, 3)
        q, k, v = qkv.unbind(0)
        return (
            self.norm_q(self.pool_q(q).permute(0, 2, 3, 1)),
            self.norm_k(self.pool_k(k).permute(0, 2, 3, 1)),
            self.norm_v(self.pool_v(v).permute(0, 2, 3, 1)),
        )

    def _cut(self, x: Tensor, window: int) -> Tensor:
        """(N * heads, h, w, C) -> (N * windows, heads, window, window, C); 0: the map is one."""
        if not window:
            return x.unflatten(0, (-1, self.num_heads))
        n = x.shape[0] // self.num_heads
        windows = window_partition(pad_to_multiple(x, window, channels_last=True), window)
        # (N * heads * windows, window^2, C) -> (N, windows, heads, window, window, C)
        windows = windows.view(n, self.num_heads, -1, window, window, x.shape[-1]).transpose(1, 2)
        return windows.flatten(0, 1)

    def _join(self, x: Tensor, queries: tuple[int, int], size: tuple[int, int]) -> Tensor:
        """(B, heads, queries, C) -> (N * heads, *size, C): the inverse of :meth:`_cut`."""
        if not self.window_q:
            return x.flatten(0, 1).unflatten(1, queries)
        h, w = (pooled_length(side, self.window_q) * self.window_q for side in size)
        windows = h // self.window_q * (w // self.window_q)
        # (N * windows, heads, window^2, C) -> (N * heads * windows, window^2, C)
        x = x.unflatten(0, (-1, windows)).transpose(1, 2).flatten(0, 2)
        return window_reverse(x, self.window_q, h, w)[:, : size[0], : size[1]]

    def _position_terms(self, q: Tensor, keys: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """The decomposed relative position term: its parts by the key's row and column.

        Args:
            q: Pooled queries, unscaled, (B, heads, h, w, head_dim).
            keys: Height and width of the grid of keys.

        Returns:
            (B, heads, h, w, key rows) and (B, heads, h, w, key columns).
        """
        rows = relative_rows(self.rel_pos_h, q.shape[2], keys[0])
        columns = relative_rows(self.rel_pos_w, q.shape[3], keys[1])
        # (B, heads, h, w, head_dim) with (h, key rows, head_dim), (w, key columns, head_dim)
        return (
            torch.einsum('bnhwc,hkc->bnhwk', q, rows),
            torch.einsum('bnhwc,wkc->bnhwk', q, columns),
        )


def weighted_values(logits: Tensor, v: Tensor) -> Tensor:
    """``softmax(logits) @ v``; without gradients, the weights of one head exist at a time.

    Args:
        logits: (B, heads, queries, keys).
        v: (B, heads, keys, C).

    Returns:
        (B, heads, queries, C).
    """
    if torch.is_grad_enabled():
        return logits.softmax(dim=-1).to(v.dtype) @ v
    heads = zip(logits.split(1, dim=1), v.split(1, dim=1))
    return torch.cat([head.softmax(dim=-1).to(v.dtype) @ values for head, values in heads], dim=1)


def relative_rows(table: Tensor, queries: int, keys: int) -> Tensor:
    """The rows of a relative position table for each pair of cells along one axis.

    Query and key cells of different size are both counted in the finer one's. The offsets are
    computed in float32 and cut off, as MViTv2's authors, mmpretrain and detectron2 do: where the
    ratio is not whole, other arithmetic would give other rows.

    Args:
        table: (L, C), resampled to 2 * max(queries, keys) - 1 rows.
        queries: Cells of the queries.
        keys: Cells of the keys.

    Returns:
        (queries, keys, C).
    """
    table = resize_line(table, 2 * max(queries, keys) - 1)
    query_step, key_step = max(keys / queries, 1.0), max(queries / keys, 1.0)
    along = {'dtype': torch.float32, 'device': table.device}
    query = torch.arange(queries, **along)[:, None] * query_step
    key = torch.arange(keys, **along)[None, :] * key_step
    return table[((query - key) + (keys - 1) * key_step).long()]


class HeadPool(nn.Conv2d):
    """The depthwise 3x3 convolution that pools a head."""

    def __init__(self, dim: int, stride: int) -> None:
        super().__init__(dim, dim, 3, stride=stride, padding=1, groups=dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C, ceil(H / stride), ceil(W / stride)), in the layout of x."""
        # Behind a flat view the gradient has the strides of the weight, not those of x: DDP
        # copies gradients of other strides, and warns.
        weight = self.weight.flatten().view(self.weight.shape)
        return F.conv2d(x, weight, None, self.stride, self.padding, groups=self.groups)


def _pool(dim: int, stride: int) -> tuple[HeadPool, nn.LayerNorm]:
    """What pools each head, and its norm."""
    return HeadPool(dim, stride), nn.LayerNorm(dim, eps=EPS)


def _fit_tables(attention: PoolingAttention, state_dict: dict, prefix: str, *_) -> None:
    """Before loading: resamples position tables of another image size."""
    for name in ('rel_pos_h', 'rel_pos_w'):
        table = state_dict.get(prefix + name)
        if table is not None and table.ndim == 2:
            state_dict[prefix + name] = resize_line(table, getattr(attention, name).shape[0])


def max_pool(x: Tensor) -> Tensor:
    """Maximum over 3x3 cells with stride 2 and padding 1.

    ``F.max_pool2d``, but for maps with channels last, and with a backward that is deterministic
    on every device: that of the pooling kernel is not on CUDA.

    Args:
        x: (N, H, W, C).

    Returns:
        (N, ceil(H / 2), ceil(W / 2), C).
    """
    x = F.pad(x, (0, 0, 1, 1, 1, 1), value=float('-inf'))
    h, w = x.shape[1] - 2, x.shape[2] - 2
    x = torch.maximum(torch.maximum(x[:, :h:2], x[:, 1 : h + 1 : 2]), x[:, 2::2])
    return torch.maximum(torch.maximum(x[:, :, :w:2], x[:, :, 1 : w + 1 : 2]), x[:, :, 2::2])


class MViTBlock(nn.Module):
    """Pooling attention, then the MLP, each behind a LayerNorm.

    Channels and heads change in the attention (MViTv2), the shortcut then goes through a linear
    layer behind the norm; where queries are strided it is max-pooled.

    Args:
        plan: Channels, heads, strides and window.
        attn: The attention.
        residual: A gate of this block's own, or None if it mixes with a shared one or not at all.
        mlp_ratio: Expansion of the MLP.
        drop_path_rate: Stochastic depth rate.
    """

    def __init__(
        self,
        plan: BlockPlan,
        attn: PoolingAttention,
        residual: ResidualAttention | None,
        mlp_ratio: float,
        drop_path_rate: float,
    ) -> None:
        super().__init__()
        self.strided = plan.stride_q > 1
        self.norm1 = nn.LayerNorm(plan.in_dim, eps=EPS)
        self.attn = attn
        self.residual = residual
        self.norm2 = nn.LayerNorm(plan.dim, eps=EPS)
        self.mlp = Mlp(plan.dim, int(plan.dim * mlp_ratio), nn.GELU())
        self.drop_path = DropPath(drop_path_rate)
        self.proj = nn.Linear(plan.in_dim, plan.dim) if plan.in_dim != plan.dim else None

    def forward(
        self,
        x: Tensor,
        carried: Scores | None,
        shared: ResidualAttention | None,
        factored: bool = False,
    ) -> tuple[Tensor, Scores | None]:
        """Runs the block.

        Args:
            x: (N, H, W, in_dim).
            carried: Scores of the block before, or None.
            shared: The gate that all blocks share, or None.
            factored: Whether scores stay in factors, for memory.

        Returns:
            The new map, (N, ceil(H / stride_q), ceil(W / stride_q), dim), and the mixed scores;
            None if the next block takes none.
        """
        normed = self.norm1(x)
        out, state = self.attn(normed, self.residual or shared, carried, factored)
        skip = x if self.proj is None else self.proj(normed)
        skip = max_pool(skip) if self.strided else skip
        x = skip + self.drop_path(out)
        return x + self.drop_path(self.mlp(self.norm2(x))), state


class PatchEmbed(nn.Module):
    """A convolution over overlapping patches, stride 4; channels last."""

    def __init__(self, in_channels: int, dim: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(in_channels, dim, kernel_size=7, stride=4, padding=3)

    def forward(self, x: Tensor) -> Tensor:
        """(N, in_channels, H, W) -> (N, ceil(H / 4), ceil(W / 4), C)."""
        return self.proj(x).permute(0, 2, 3, 1).contiguous()


def _arch(dim: int, depths: Sequence[int]) -> dict:
    return {'embed_dims': dim, 'depths': tuple(depths), 'num_heads': 1, 'mlp_ratio': 4}


@MODELS.register_module()
class ReMViTv2(PyramidBackbone):
    """MViTv2 (arXiv 2112.01526) with residual attention (arXiv 2402.11301).

    The scores of each block are mixed with those of the block before it,
    ``S_l = alpha * scores_l + (1 - alpha) * S_{l-1}``, brought to its heads and grids by
    :func:`~mmvit_ext.models.layers.score_grid.fit_scores`; a fixed ``alpha=1`` is plain MViTv2.
    Takes images of any size, (N, in_channels, H, W), and returns a tuple of contiguous maps,
    (N, C_i, ceil(H / s), ceil(W / s)) with strides s of 4, 8, 16, 32.

    With a ``window_size`` blocks look within windows, as detectron2's MViTv2 for detection does,
    but for the last block of each stage behind the first. The first block of a stage still has
    the window of the stage before; behind it the side halves, so that the number of windows stays.
    Scores are carried between windowed blocks, window by window, and between global ones; where
    the one follows the other the chain starts anew.

    Args:
        arch: 'tiny', 'small', 'base', 'nano'; or a dict with ``embed_dims``, ``depths``,
            ``num_heads`` (of the first stage) and ``mlp_ratio``.
        in_channels: Channels of the image.
        embed_dims: Channels of the first stage, doubled in each further one. Default: the arch's.
        depths: Blocks of each stage. Default: the arch's.
        num_heads: Attention heads of the first stage, doubled in each further one. Default: the
            arch's.
        mlp_ratio: Expansion of the MLP. Default: the arch's.
        img_size: Image side, or height and width, that the position tables are for; other images
            resample them.
        alpha: Share of a block's own scores: the value if fixed, the start if learnable.
        alpha_mode: 'fixed', 'shared' (the authors' choice: one parameter for the whole network;
            frozen as soon as a stage is) or 'block' (one for each block that mixes).
        alpha_bounded: Keeps a learnable alpha in (0, 1) through a sigmoid.
        carry_rel_pos: Whether carried scores hold the relative position term, as in the authors'
            code, or not, as in the paper's equation.
        scores: 'dense' computes scores as a whole; 'factored' keeps them as products, exact in
            memory that is linear in the pixels; 'auto' takes factors where scores are large.
        window_size: Side of a window in tokens of the first stage (detectron2: 56), a multiple of
            8; 0 for none.
        qkv_bias: Whether queries, keys and values have a bias.
        drop_path_rate: Stochastic depth rate of the last block, rising from 0.
        use_abs_pos_embed: Adds a learned absolute position embedding, resampled to any map.
        out_indices: Stages whose maps are returned, ascending.
        frozen_stages: -1 freezes nothing, 0 the patch embedding, k also the first k stages and
            their output norms (mmdet's meaning).
        norm_eval: Keeps batch norms in eval mode while training; LayerNorm has no such mode.
        with_cp: Recomputes blocks in the backward pass to save memory.
        init_cfg: mmengine's initialisation config.

    Raises:
        ValueError: On an unknown arch, or settings that do not fit together.

    Example:
        >>> import torch
        >>> from mmvit_ext.models import ReMViTv2
        >>> model = ReMViTv2('nano')
        >>> [tuple(m.shape) for m in model(torch.rand(1, 3, 65, 97))]
        [(1, 48, 17, 25), (1, 96, 9, 13), (1, 192, 5, 7), (1, 384, 3, 4)]
    """

    trunc_normal_layers = (nn.Linear, nn.Conv2d)
    arch_zoo = {
        'nano': _arch(48, (1, 2, 2, 1)),
        'tiny': _arch(96, (1, 2, 5, 2)),
        'small': _arch(96, (1, 2, 11, 2)),
        'base': _arch(96, (2, 3, 16, 3)),
    }

    def __init__(
        self,
        arch: str | dict = 'tiny',
        in_channels: int = 3,
        embed_dims: int | None = None,
        depths: Sequence[int] | None = None,
        num_heads: int | None = None,
        mlp_ratio: float | None = None,
        img_size: int | Sequence[int] = 224,
        alpha: float = 0.5,
        alpha_mode: str = 'shared',
        alpha_bounded: bool = False,
        carry_rel_pos: bool = True,
        scores: str = 'auto',
        window_size: int = 0,
        qkv_bias: bool = True,
        drop_path_rate: float = 0.1,
        use_abs_pos_embed: bool = False,
        out_indices: Sequence[int] = (0, 1, 2, 3),
        frozen_stages: int = -1,
        norm_eval: bool = False,
        with_cp: bool = False,
        init_cfg: dict | None = None,
    ) -> None:
        overrides = {
            'embed_dims': embed_dims,
            'depths': depths,
            'num_heads': num_heads,
            'mlp_ratio': mlp_ratio,
        }
        settings = resolve_arch('ReMViTv2', arch, self.arch_zoo, overrides)
        _check_settings(settings, window_size)
        dim, depths, num_heads = (settings[k] for k in ('embed_dims', 'depths', 'num_heads'))
        dims = [dim * 2**i for i in range(len(depths))]
        super().__init__(dims, depths, out_indices, frozen_stages, norm_eval, with_cp, init_cfg)

        self.patch_embed = PatchEmbed(in_channels, dim)
        self.use_abs_pos_embed = use_abs_pos_embed
        if use_abs_pos_embed:
            self._add_absolute_pos_embed(dim, img_size, 4)
        self.scores = checked_form('ReMViTv2', scores)
        self.gates = Gates(alpha, alpha_mode, alpha_bounded)
        grid = tuple(pooled_length(side, 4) for side in image_size(img_size))
        stages = plan_stages(self.dims, depths, num_heads, grid, window_size, self.gates.carries)
        self.plans = [plan for plans in stages for plan in plans]
        # a parameter that nothing uses would never get a gradient
        mixes = any(plan.mixes for plan in self.plans)
        self.residual = self.gates.shared() if mixes else None

        def block(plan: BlockPlan, rate: float) -> MViTBlock:
            attn = PoolingAttention(plan, qkv_bias, carry_rel_pos)
            own = self.gates.own() if plan.mixes else None
            return MViTBlock(plan, attn, own, settings['mlp_ratio'], rate)

        rates = drop_path_rates(drop_path_rate, depths)
        self.stages = nn.ModuleList(
            Stage([block(*pair) for pair in zip(plans, rate)], None)
            for plans, rate in zip(stages, rates)
        )
        self._add_output_norms(lambda width: nn.LayerNorm(width, eps=EPS))
        self._freeze()

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
        factored = iter(self._in_factors(x))
        outs, carried = [], None
        for i, stage in enumerate(self.stages):
            for block in stage.blocks:
                x, carried = self._run(block, x, carried, self.residual, next(factored))
            if i in self.out_indices:
                outs.append(self._output(i, x))
        return tuple(outs)

    def _in_factors(self, x: Tensor) -> list[bool]:
        """For each block, whether its scores stay in factors; x is the first block's input."""
        counts, size = [], tuple(x.shape[1:3])
        for plan in self.plans:
            counts.append(x.shape[0] * plan.count_scores(size))
            size = plan.output_size(size)
        return in_factors(self.scores, counts, [plan.hands_on for plan in self.plans])

    def _output(self, i: int, x: Tensor) -> Tensor:
        # (N, H, W, C) -> (N, C, H, W)
        return getattr(self, f'norm{i}')(x).permute(0, 3, 1, 2).contiguous()


def plan_stages(
    dims: Sequence[int],
    depths: Sequence[int],
    num_heads: int,
    grid: tuple[int, int],
    window: int,
    carries: bool,
) -> list[list[BlockPlan]]:
    """Plans the blocks of each stage.

    Args:
        dims: Channels of each stage that is built.
        depths: Blocks of each stage.
        num_heads: Heads of the first stage.
        grid: Height and width of the first map that the position tables are for.
        window: Side of a window in tokens of the first stage, or 0.
        carries: Whether scores are carried at all.

    Returns:
        The plans of each stage.
    """
    places = [(stage, i) for stage in range(len(dims)) for i in range(depths[stage])]
    windowed = [_is_windowed(*place, depths, window) for place in places]
    # a chain reaches from a block to the next where both are windowed or both are global
    links = [carries and a == b for a, b in zip(windowed, windowed[1:])]
    stages = [[] for _ in dims]
    for place, inside, mixes, hands_on in zip(places, windowed, [False, *links], [*links, False]):
        stage, i = place
        first, last = stage > 0 and i == 0, i == depths[stage] - 1
        entered = stage - first  # the stage whose map comes in
        # detectron2 pools the keys of the global blocks of these stages once more
        coarser = 2 if window and last and stage in (1, 2) else 1
        plan = BlockPlan(
            in_dim=dims[entered],
            dim=dims[stage],
            num_heads=num_heads * 2**stage,
            stride_q=2 if first else 1,
            stride_kv=max(4 >> stage, 1) * coarser,
            window=window >> entered if inside else 0,
            grid=tuple(pooled_length(side, 2**entered) for side in grid),
            mixes=mixes,
            hands_on=hands_on,
        )
        stages[stage].append(plan)
    return stages


def _is_windowed(stage: int, block: int, depths: Sequence[int], window: int) -> bool:
    return window > 0 and (stage == 0 or block < depths[stage] - 1)


def _check_settings(settings: dict, window: int) -> None:
    dim, depths, heads = (settings[k] for k in ('embed_dims', 'depths', 'num_heads'))
    if min(depths) < 1:
        raise ValueError(f'ReMViTv2: depths={depths}: give each stage one block or more')
    if dim % heads:
        raise ValueError(
            f'ReMViTv2: embed_dims={dim}: does not divide into num_heads={heads}; choose a '
            f'multiple of {heads}'
        )
    # the window has to divide by the strides of queries and keys in every stage
    unit = max(4, 2 ** (len(depths) - 1))
    if window < 0 or window % unit:
        raise ValueError(
            f'ReMViTv2: window_size={window}: does not divide by the strides of the stages; '
            f'choose a multiple of {unit}, or 0 for none'
        )
