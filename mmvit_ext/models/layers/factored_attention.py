"""Attention whose matrix of scores never exists as a whole.

The scores come in factors (:mod:`~mmvit_ext.models.layers.score_factors`). Either they are built
for some queries at a time, or a fused kernel takes the factors as queries and keys of a larger
head.
"""

from itertools import repeat
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .precision import autocast_as_now
from .score_factors import Product, ScoreFactors

# Scores that exist at once: 8 MiB in float32, which stay in the cache from step to step.
BLOCK_SCORES = 2**21
# Widest head of torch's fused kernels; their alignment in numbers.
FUSED_RANK, ALIGNMENT = 256, 8


def attend(scores: ScoreFactors, v: Tensor) -> Tensor:
    """``softmax(S) v`` in memory that grows with queries + keys, not with their product.

    On CUDA, where the rank of the factors allows it, through a fused kernel of torch; elsewhere
    over blocks of queries, which the backward pass computes again.

    Args:
        scores: The scores S before the softmax, between Q queries and K keys.
        v: Values, (B, heads, K, C).

    Returns:
        (B, heads, Q, C).
    """
    if v.is_cuda and fused_rank(scores) <= FUSED_RANK:
        return attend_fused(scores, v)
    return attend_in_blocks(scores, v)


def attend_in_blocks(scores: ScoreFactors, v: Tensor, block: int = BLOCK_SCORES) -> Tensor:
    """:func:`attend` over blocks of queries, head by head.

    Args:
        scores: The scores S.
        v: Values, (B, heads, K, C).
        block: Most scores that exist at once, beside those that heads share; a block has one query
            at least.

    Returns:
        (B, heads, Q, C).
    """
    if scores.queries[0] * scores.queries[1] * v.shape[2] * v.shape[0] <= block:
        return _by_head(scores, v)
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        return _InBlocks.apply(scores, block, v, *scores.tensors())
    return _block_by_block(scores, v, block)


class _InBlocks(torch.autograd.Function):
    """Keeps no scores; checkpoints of the blocks would leave holes in memory between them."""

    @staticmethod
    def forward(ctx: Any, scores: ScoreFactors, block: int, v: Tensor, *factors: Tensor) -> Tensor:
        """See :func:`attend_in_blocks`."""
        # tensors kept here would be out of reach for those who decide what to keep
        ctx.scores = scores.with_tensors([x.new_empty(0) for x in factors])
        ctx.block, ctx.autocast = block, autocast_as_now(v)
        ctx.save_for_backward(v, *factors)
        return _block_by_block(scores.with_tensors(factors), v, block)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Computes the blocks again; those of the gradients are added up in place."""
        v, *factors = ctx.saved_tensors
        gradients = [torch.zeros_like(x) for x in (v, *factors)]
        pieces = _parts(ctx.scores.with_tensors(factors), v, gradient, ctx.block)
        places = _parts(ctx.scores.with_tensors(gradients[1:]), gradients[0], gradient, ctx.block)
        for (part, values, share), (place, values_place, _) in zip(pieces, places):
            inputs = [x.detach().requires_grad_() for x in (values, *part.tensors())]
            with torch.enable_grad(), ctx.autocast():
                out = _by_head(part.with_tensors(inputs[1:]), inputs[0])
            found = torch.autograd.grad(out, inputs, share.to(out.dtype))
            for total, one in zip((values_place, *place.tensors()), found):
                total.add_(one)
        return None, None, *gradients


def _parts(
    scores: ScoreFactors, v: Tensor, out: Tensor, block: int
) -> list[tuple[ScoreFactors, Tensor, Tensor]]:
    """Scores, values and output, or what is shaped like them, block by block; all of them views."""
    count, keys = scores.queries[0] * scores.queries[1], v.shape[2]
    queries, images = max(block // keys, 1), max(block // (count * keys), 1)
    return [
        part
        for some, values, outs in zip(
            scores.split(images, dim=0), v.split(images), out.split(images)
        )
        for part in zip(some.split(queries, dim=2), repeat(values), outs.split(queries, dim=2))
    ]


def _block_by_block(scores: ScoreFactors, v: Tensor, block: int) -> Tensor:
    count = scores.queries[0] * scores.queries[1]
    out = v.new_empty(*v.shape[:2], count, v.shape[3])
    for part, values, place in _parts(scores, v, out, block):
        place.copy_(_by_head(part, values))
    return out


def _by_head(scores: ScoreFactors, v: Tensor) -> Tensor:
    heads = zip(scores.each_head(), v.split(1, dim=1), strict=True)
    outs = [head.dense().softmax(dim=-1).to(v.dtype) @ values for head, values in heads]
    return torch.cat(outs, dim=1)


def fused_rank(scores: ScoreFactors) -> int:
    """Channels of a head that holds all factors, aligned."""
    rank = sum(product.left.shape[-1] for product in scores.products)
    rank += sum(term.shape[-1] for term in (scores.rows, scores.columns) if term is not None)
    return -(-rank // ALIGNMENT) * ALIGNMENT


def attend_fused(scores: ScoreFactors, v: Tensor) -> Tensor:
    """:func:`attend` through ``scaled_dot_product_attention``.

    The factors stand side by side in one head; the position terms are products with keys that are
    1 in their row's, or column's, place.

    Args:
        scores: The scores S.
        v: Values, (B, heads, K, C).

    Returns:
        (B, heads, Q, C).
    """
    channels, rank = v.shape[-1], fused_rank(scores)
    summands = [_repeated(product, scores.keys) for product in scores.products]
    for axis, term in enumerate((scores.rows, scores.columns)):
        if term is not None:
            summands.append((term, _one_hot(scores.keys, axis, term)))
    left, right = (_side_by_side(factors, v, rank) for factors in zip(*summands))
    # FlashAttention, which is for half precision, wants values as wide as queries and keys
    wide = v if v.dtype in (torch.float32, torch.float64) else F.pad(v, (0, rank - channels))
    return F.scaled_dot_product_attention(left, right, wide, scale=1.0)[..., :channels]


def _repeated(product: Product, keys: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Both factors, the one of the keys with a row for each key."""
    rows, columns = product.cells
    # (B, heads, cells, rank) -> (B, heads, rows, times, columns, times, rank) -> (.., K, rank)
    grid = product.right.unflatten(2, (rows, 1, columns, 1))
    grid = grid.expand(-1, -1, -1, keys[0] // rows, -1, keys[1] // columns, -1)
    return product.left, grid.flatten(2, 5)


def _one_hot(keys: tuple[int, int], axis: int, like: Tensor) -> Tensor:
    """(1, 1, K, keys[axis]): 1 at the row (axis 0) or the column (axis 1) of each key."""
    unit = torch.eye(keys[axis], dtype=like.dtype, device=like.device)
    # (cells, cells) -> (rows, columns, cells of the axis)
    grid = unit[:, None] if axis == 0 else unit[None]
    return grid.expand(*keys, -1).reshape(1, 1, -1, keys[axis])


def _side_by_side(factors: tuple[Tensor, ...], v: Tensor, rank: int) -> Tensor:
    """(B, heads, tokens, rank), with zeros behind the factors."""
    wide = [f.to(v.dtype).expand(*v.shape[:2], -1, -1) for f in factors]
    joined = torch.cat(wide, dim=-1)
    return F.pad(joined, (0, rank - joined.shape[-1]))
