"""Plain vision transformers, with residual attention (ReViT) or augmented shortcuts (AugViT).

Methods: ReViT, "Enhancing Vision Transformers with Residual Attention" (arXiv 2402.11301), and
"Augmented Shortcuts for Vision Transformers" (arXiv 2106.15941), on ViT (arXiv 2010.11929) and
DeiT (arXiv 2012.12877). Origin of the methods' code: ADiko1997/ReViT (``model/revit_model.py``,
``model/attention.py``), huawei-noah/Efficient-AI-Backbones (``augvit_pytorch``).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
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
    Shortcuts,
    TransformerBlock,
    attend,
    checked_form,
    full_precision,
    in_factors,
    pad_to_multiple,
)
from .base import TABLES, Backbone, drop_path_rates, resolve_arch

# the authors' and DeiT's
LayerNorm = partial(nn.LayerNorm, eps=1e-6)


class Attention(nn.Module):
    """Multi-head attention over all tokens, with carried scores.

    Args:
        dim: Channels.
        num_heads: Attention heads.
        qkv_bias: Whether queries, keys and values have a bias.
        attn_drop_rate: Dropout of the attention weights.
        drop_rate: Dropout of the output.
        carries: Whether scores are carried from block to block.
        scores: 'dense', 'factored' or 'auto', see :class:`PlainViT`.
        depth: Blocks of the network, whose scores a backward pass needs at once.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        qkv_bias: bool,
        attn_drop_rate: float,
        drop_rate: float,
        carries: bool,
        scores: str,
        depth: int,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.carries = carries
        self.scores = scores
        self.depth = depth
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.attn_drop = nn.Dropout(attn_drop_rate)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(drop_rate)

    def forward(
        self, x: Tensor, residual: ResidualAttention | None, carried: Scores | None
    ) -> tuple[Tensor, Scores | None]:
        """Attends over all tokens.

        Args:
            x: (N, L, C).
            residual: The gate; None where nothing is mixed.
            carried: Scores of the block before, of the same form as this block's, or None.

        Returns:
            The output, (N, L, C), and the mixed scores, between (1, L) queries and (1, L) keys, in
            float32 at least, or in factors; None where a fused kernel kept them to itself.
        """
        n, tokens, c = x.shape
        # (N, L, 3C) -> 3 x (N, heads, L, head_dim)
        qkv = self.qkv(x).view(n, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        out, state = self._choose(n, tokens)(*qkv.unbind(0), residual, carried)
        # (N, heads, L, head_dim) -> (N, L, C)
        out = out.transpose(1, 2).reshape(n, tokens, c)
        return self.proj_drop(self.proj(out)), state

    def _choose(self, images: int, tokens: int) -> Callable[..., tuple[Tensor, Scores | None]]:
        """The way to attend."""
        if not self.carries:
            return self._attend_dense if self.scores == 'dense' else self._attend_fused
        if self.training and self.attn_drop.p:
            return self._attend_dense
        counts = [images * self.num_heads * tokens**2] * self.depth
        factored = in_factors(self.scores, counts, [True] * self.depth)[0]
        return self._attend_factored if factored else self._attend_dense

    def _attend_fused(self, q: Tensor, k: Tensor, v: Tensor, *_: None) -> tuple[Tensor, None]:
        drop_rate = self.attn_drop.p if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=drop_rate, scale=self.scale)
        return out, None

    def _attend_dense(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        residual: ResidualAttention | None,
        carried: ScoreGrid | None,
    ) -> tuple[Tensor, ScoreGrid]:
        # Scaling before the product keeps half precision from overflowing.
        scores = full_precision((q * self.scale) @ k.transpose(-2, -1))
        if residual is not None and carried is not None:
            scores = residual.mix_(scores, carried.scores)
        weights = self.attn_drop(scores.softmax(dim=-1))
        grid = (1, q.shape[2])
        return weights.to(v.dtype) @ v, ScoreGrid(scores, grid, grid)

    def _attend_factored(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        residual: ResidualAttention | None,
        carried: ScoreFactors | None,
    ) -> tuple[Tensor, ScoreFactors]:
        grid = (1, q.shape[2])
        own = Product(q * self.scale, k, grid)
        scores = ScoreFactors((own,), None, None, grid, grid)
        if residual is not None and carried is not None:
            scores = residual.mix_factors(scores, carried)
        return attend(scores, v), scores


class PatchEmbed(nn.Module):
    """A convolution over patches; channels last."""

    def __init__(self, in_channels: int, dim: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(in_channels, dim, kernel_size=patch, stride=patch)

    def forward(self, x: Tensor) -> Tensor:
        """(N, in_channels, H, W) -> (N, ceil(H / patch), ceil(W / patch), C)."""
        x = self.proj(pad_to_multiple(x, self.proj.stride[0]))
        return x.permute(0, 2, 3, 1)


def _arch(dim: int, depth: int, num_heads: int) -> dict:
    return {'embed_dims': dim, 'depth': depth, 'num_heads': num_heads, 'mlp_ratio': 4}


class PlainViT(Backbone):
    """ViT (arXiv 2010.11929), open to residual attention and augmented shortcuts.

    Takes images of any size, (N, in_channels, H, W), padded to whole patches at the right and
    bottom, and returns one output for each of ``out_indices``, behind a norm of its own.

    Args:
        arch: A name in ``arch_zoo``; or a dict with ``embed_dims``, ``depth``, ``num_heads`` and
            ``mlp_ratio``.
        gates: The gates of residual attention; by default there is none.
        shortcuts: The shortcuts of the blocks; plain by default.
        scores: 'dense' computes attention scores as a whole; 'factored' keeps carried ones as
            products, exact in memory that is linear in the tokens, but without dropout of attention
            weights; 'auto' takes factors where scores are large, and a fused kernel of torch,
            which shows no scores, where none are carried.
        with_cls_token: Whether a class token runs beside the patches.
        out_type: 'featmap', (N, C, ceil(H / patch), ceil(W / patch)), for necks; 'avg_featmap',
            (N, C), the mean of the patch tokens; 'cls_token', (N, C), where there is one.
        in_channels: Channels of the image.
        patch_size: Side of a patch, in pixels.
        img_size: Image side, or height and width, that the position table is for, in pixels; the
            table is resampled to any other.
        embed_dims: Channels. Default: the arch's.
        depth: Blocks. Default: the arch's.
        num_heads: Attention heads. Default: the arch's.
        mlp_ratio: Expansion of the MLP. Default: the arch's.
        qkv_bias: Whether queries, keys and values have a bias.
        drop_rate: Dropout after the position embedding, in the MLP and after attention.
        attn_drop_rate: Dropout of the attention weights.
        drop_path_rate: Stochastic depth rate of the last block, rising from 0.
        out_indices: Blocks whose outputs are returned, ascending; -1 is the last.
        frozen_stages: -1 freezes nothing, 0 the patch embedding with tokens and positions, k also
            the first k blocks and their output norms.
        norm_eval: Keeps batch norms in eval mode while training; LayerNorm has no such mode.
        with_cp: Recomputes blocks in the backward pass to save memory.
        init_cfg: mmengine's initialisation config.

    Raises:
        ValueError: On an unknown arch, or settings that do not fit together.
    """

    units = 'blocks'
    arch_zoo = {
        'nano': _arch(96, 4, 3),
        'tiny': _arch(192, 12, 3),
        'small': _arch(384, 12, 6),
        'base': _arch(768, 12, 12),
    }

    def __init__(
        self,
        arch: str | dict = 'base',
        gates: Gates = Gates(),  # noqa: B008  frozen
        shortcuts: Shortcuts = Shortcuts(),  # noqa: B008  frozen
        scores: str = 'auto',
        with_cls_token: bool = False,
        out_type: str = 'featmap',
        in_channels: int = 3,
        patch_size: int = 16,
        img_size: int | Sequence[int] = 224,
        embed_dims: int | None = None,
        depth: int | None = None,
        num_heads: int | None = None,
        mlp_ratio: float | None = None,
        qkv_bias: bool = True,
        drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        drop_path_rate: float = 0.1,
        out_indices: int | Sequence[int] = -1,
        frozen_stages: int = -1,
        norm_eval: bool = False,
        with_cp: bool = False,
        init_cfg: dict | None = None,
    ) -> None:
        name = type(self).__name__
        settings = resolve_arch(
            name,
            arch,
            self.arch_zoo,
            {
                'embed_dims': embed_dims,
                'depth': depth,
                'num_heads': num_heads,
                'mlp_ratio': mlp_ratio,
            },
        )
        dim, depth, heads = (settings[k] for k in ('embed_dims', 'depth', 'num_heads'))
        if dim % heads:
            raise ValueError(f'{name}: {dim} channels do not divide into {heads} heads')
        choices = ('featmap', 'avg_featmap', *(['cls_token'] if with_cls_token else []))
        if out_type not in choices:
            raise ValueError(f"{name}: out_type='{out_type}': choose from {', '.join(choices)}")
        dims = [dim] * depth
        super().__init__(dims, out_indices, frozen_stages, norm_eval, with_cp, init_cfg)
        self.depth = depth
        self.out_type = out_type
        self.patch_size = patch_size

        self.patch_embed = PatchEmbed(in_channels, dim, patch_size)
        self.cls_token = self.cls_pos_embed = None
        if with_cls_token:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
            self.cls_pos_embed = nn.Parameter(torch.zeros(1, 1, dim))
        self._add_absolute_pos_embed(dim, img_size, patch_size)
        self.drop_after_pos = nn.Dropout(drop_rate)
        # the first block has nothing to mix, and a gate that none uses would get no gradient
        self.residual = gates.shared() if len(self.dims) > 1 else None
        self.carries = gates.carries
        if checked_form(name, scores) == 'factored' and attn_drop_rate:
            raise ValueError(
                f"{name}: attn_drop_rate={attn_drop_rate}: scores='factored' knows no dropout of "
                "attention weights; set 0, or scores='dense'"
            )

        def block(i: int, rate: float) -> TransformerBlock:
            attn = Attention(
                dim, heads, qkv_bias, attn_drop_rate, drop_rate, gates.carries, scores, depth
            )
            own = gates.own() if i else None
            mlp = Mlp(dim, int(dim * settings['mlp_ratio']), nn.GELU(), drop_rate)
            return TransformerBlock(dim, attn, mlp, LayerNorm, own, shortcuts.make(dim), rate)

        rates = drop_path_rates(drop_path_rate, [depth])[0]
        self.blocks = nn.ModuleList(block(i, rates[i]) for i in range(len(self.dims)))
        self._add_output_norms(LayerNorm)
        self._freeze()

    def _reduction(self, unit: int) -> int:
        return self.patch_size

    def _frozen_modules(self) -> list[nn.Module]:
        modules = super()._frozen_modules()
        return [*modules, self.drop_after_pos] if modules else []

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Computes the outputs.

        Args:
            x: Images, (N, in_channels, H, W), any H, W >= 1.

        Returns:
            One output for each of ``out_indices``, shaped as ``out_type`` says.
        """
        x = self._with_position(self.patch_embed(x))
        grid = tuple(x.shape[1:3])
        # (N, h, w, C) -> (N, L, C)
        x = x.flatten(1, 2)
        if self.cls_token is not None:
            cls = (self.cls_token + self.cls_pos_embed).expand(x.shape[0], -1, -1)
            x = torch.cat([cls.to(x.dtype), x], dim=1)
        x = self.drop_after_pos(x)
        outs, carried = [], None
        for i, block in enumerate(self.blocks):
            x, scores = self._run(block, x, carried, self.residual)
            carried = scores if self.carries else None
            if i in self.out_indices:
                outs.append(self._output(getattr(self, f'norm{i}')(x), grid))
        return tuple(outs)

    def _output(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        """Normalised tokens, (N, L, C), as ``out_type`` says."""
        if self.out_type == 'cls_token':
            return x[:, 0]
        patches = x[:, x.shape[1] - grid[0] * grid[1] :]
        if self.out_type == 'avg_featmap':
            return patches.mean(dim=1)
        # (N, L, C) -> (N, C, h, w)
        return patches.transpose(1, 2).unflatten(2, grid).contiguous()

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """The depth of a parameter, for layer-wise learning rates.

        Args:
            param_name: Full name of the parameter.
            prefix: What stands before the backbone's own names, e.g. ``'backbone.'``.

        Returns:
            The depth, 0 for patch embedding, tokens and positions up to ``num_layers - 1`` for
            output norms and all behind the backbone; and ``num_layers``, blocks + 2.
        """
        num_layers = self.depth + 2
        parts = param_name.removeprefix(prefix).split('.')
        if not param_name.startswith(prefix):
            return num_layers - 1, num_layers
        if parts[0] in (*TABLES, 'patch_embed'):
            return 0, num_layers
        if parts[0] == self.units:
            return int(parts[1]) + 1, num_layers
        return num_layers - 1, num_layers


@MODELS.register_module()
class ReViT(PlainViT):
    """ViT with residual attention (arXiv 2402.11301), without a class token.

    The scores of each block are mixed with those of the block before it,
    ``S_l = alpha * scores_l + (1 - alpha) * S_{l-1}``; alpha fixed at 1 is plain ViT.

    Args:
        arch: 'base', 'small', 'tiny', 'nano'; or a dict, see :class:`PlainViT`.
        alpha: Share of a block's own scores: the value if fixed, the start if learnable.
        alpha_mode: 'shared' (the authors': one parameter for the whole network; frozen as soon as
            a block is), 'fixed' or 'block' (one for each block that mixes).
        alpha_bounded: Keeps a learnable alpha in (0, 1) through a sigmoid.
        out_type: 'featmap' for necks, or 'avg_featmap', the mean of the tokens, for classifiers.
        **kwargs: All other arguments of :class:`PlainViT` but the class token.

    Example:
        >>> import torch
        >>> from mmvit_ext.models import ReViT
        >>> [tuple(m.shape) for m in ReViT('nano')(torch.rand(1, 3, 65, 97))]
        [(1, 96, 5, 7)]
    """

    def __init__(
        self,
        arch: str | dict = 'base',
        alpha: float = 0.5,
        alpha_mode: str = 'shared',
        alpha_bounded: bool = False,
        out_type: str = 'featmap',
        **kwargs: Any,
    ) -> None:
        gates = Gates(alpha, alpha_mode, alpha_bounded)
        super().__init__(arch, gates=gates, out_type=out_type, **kwargs)


@MODELS.register_module()
class AugViT(PlainViT):
    """DeiT with augmented shortcuts (arXiv 2106.15941), with a class token.

    Around attention and around the MLP, learnable paths stand beside the identity,
    ``z' = s * (z + f(u) + sum_i T_i(u))`` with u the normalised z. ``num_paths=0`` is plain DeiT.

    Args:
        arch: 'small', 'base', 'tiny', 'nano'; or a dict, see :class:`PlainViT`.
        num_paths: Paths beside the identity at each place, 0 to 4.
        where: Place of the paths: 'msa' (attention), 'mlp' or 'both'.
        projection: Form of a path's matrix: 'circulant' (blocks that are circulant) or 'linear'.
        num_blocks: Circulant blocks a side of the matrix; has to divide the channels.
        act: Activation of the paths by its name in mmcv, or 'none'. Default: none with one path,
            GELU with more.
        scale: The factor s. Default: 1 with one path, 3/4 with more.
        out_type: 'featmap' for necks; 'cls_token' (the authors' classifiers) or 'avg_featmap'.
        **kwargs: All other arguments of :class:`PlainViT`.

    Example:
        >>> import torch
        >>> from mmvit_ext.models import AugViT
        >>> model = AugViT('nano', out_type='cls_token')
        >>> [tuple(m.shape) for m in model(torch.rand(1, 3, 65, 97))]
        [(1, 96)]
    """

    def __init__(
        self,
        arch: str | dict = 'small',
        num_paths: int = 2,
        where: str = 'both',
        projection: str = 'circulant',
        num_blocks: int = 4,
        act: str | None = None,
        scale: float | None = None,
        out_type: str = 'featmap',
        **kwargs: Any,
    ) -> None:
        shortcuts = Shortcuts(num_paths, where, projection, num_blocks, act, scale)
        super().__init__(
            arch, shortcuts=shortcuts, with_cls_token=True, out_type=out_type, **kwargs
        )
