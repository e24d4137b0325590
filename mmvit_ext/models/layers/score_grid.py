"""Attention scores between two grids of tokens, and bringing them to other grids.

Method: ReViT, "Enhancing Vision Transformers with Residual Attention" (arXiv 2402.11301), for
blocks that pool queries and keys (MViTv2, arXiv 2112.01526). Origin of the method's code:
ADiko1997/ReViT (``model/attention.py``), which knows square grids and whole ratios.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .precision import without_autocast


class ScoreGrid(NamedTuple):
    """Scores that a block hands on.

    Attributes:
        scores: (N, heads or 1, queries, keys), rows of a grid one after the other; a block that
            looks within windows has them one after the other along the first axis.
        queries: Height and width of the grid of queries, or of a window's.
        keys: Height and width of the grid of keys, or of a window's.
    """

    scores: Tensor
    queries: tuple[int, int]
    keys: tuple[int, int]


def fit_scores(
    carried: ScoreGrid, heads: int, queries: tuple[int, int], keys: tuple[int, int]
) -> Tensor:
    """Brings carried scores to another number of heads and to other grids.

    Another number of heads gets the mean over the carried ones. An axis of a grid that shrinks is
    average-pooled, cell i of t over the source cells floor(i * s / t) to
    ceil((i + 1) * s / t) - 1 (``F.adaptive_avg_pool2d``; plain pooling where t divides s); an
    axis that grows takes the nearest neighbour, floor(i * s / t).

    Args:
        carried: The scores of the block before.
        heads: Heads of this block.
        queries: Height and width of this block's grid of queries.
        keys: Height and width of this block's grid of keys.

    Returns:
        (N, heads or 1, queries, keys): one head where head counts differ, to be broadcast. The
        carried tensor itself if nothing had to change.
    """
    scores = carried.scores
    source, target = (*carried.queries, *carried.keys), (*queries, *keys)
    if scores.shape[1] not in (1, heads):
        scores = scores.mean(dim=1, keepdim=True)
    if source == target:
        return scores
    # (N, heads, queries, keys) -> (N, heads, query rows, query columns, key rows, key columns)
    grid = scores.unflatten(3, carried.keys).unflatten(2, carried.queries)
    # shrinking first keeps what lies between small
    for axis in sorted(range(4), key=lambda i: target[i] / source[i]):
        grid = fit_axis(grid, axis + 2, target[axis])
    # -> (N, heads, queries, keys)
    return grid.flatten(4).flatten(2, 3)


def fit_axis(x: Tensor, axis: int, target: int) -> Tensor:
    """Pools or repeats the cells of one axis of a grid, as :func:`fit_scores` describes.

    Args:
        x: Any tensor.
        axis: The axis, counted from the front.
        target: Cells wanted.

    Returns:
        The tensor with ``target`` cells along the axis; x itself if it has them.
    """
    source = x.shape[axis]
    if source == target:
        return x
    if source % target == 0:
        # sums of slices: torch's mean over an axis in the middle is several times slower
        times = source // target
        slices = x.unflatten(axis, (target, times)).unbind(axis + 1)
        return sum(slices[1:], slices[0]) / times
    if target % source == 0:
        return _repeat(x, axis, target // source)
    with without_autocast(x):
        return (x.movedim(axis, -1) @ _fitting(source, target, x)).movedim(-1, axis)


def _repeat(x: Tensor, axis: int, times: int) -> Tensor:
    """Repeats each cell of an axis; the backward is a sum, deterministic unlike an index's."""
    shape = [-1] * (x.ndim + 1)
    shape[axis + 1] = times
    return x.unsqueeze(axis + 1).expand(shape).flatten(axis, axis + 1)


def _fitting(source: int, target: int, like: Tensor) -> Tensor:
    """(source, target): the share of each source cell in each target cell.

    A matrix instead of a pooling or indexing kernel: its backward is deterministic everywhere.
    """
    cell = torch.arange(source, device=like.device)[:, None]
    index = torch.arange(target, device=like.device)
    start = index * source // target
    # one cell behind the last; growing axes read a single cell
    stop = start + 1 if target > source else -(-(index + 1) * source // target)
    inside = (cell >= start) & (cell < stop)
    return inside.to(like.dtype) / (stop - start).to(like.dtype)
