"""Attention scores as sums of products, so that the matrix of scores never has to exist.

Everything that residual attention does to scores (ReViT, arXiv 2402.11301) is linear: mixing, the
mean over heads, pooling and repeating cells of a grid, adding position terms that depend on the
key's row or column alone. It can therefore be done to the factors: ``a Q K^T + (1 - a) P R^T`` is
``[a Q | (1 - a) P] [K | R]^T``. Memory is (queries + keys) * rank instead of queries * keys.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from .precision import full_precision
from .score_grid import ScoreGrid, fit_axis, fit_scores


class Product(NamedTuple):
    """One summand of the scores: ``left @ right^T``, with each cell of ``right`` repeated.

    Attributes:
        left: Factor of the queries, (B, heads or 1, queries, rank).
        right: Factor of the keys, (B, heads or 1, cells, rank).
        cells: Height and width of the grid of ``right``; both divide those of the keys. A grid
            that grew by whole numbers is not repeated until the product is there.
    """

    left: Tensor
    right: Tensor
    cells: tuple[int, int]

    def joined(self) -> 'Product':
        """The mean over heads as one product: the heads' factors side by side."""
        heads = self.left.shape[1]
        # (B, heads, tokens, rank) -> (B, 1, tokens, heads * rank)
        left, right = (x.transpose(1, 2).flatten(2).unsqueeze(1) for x in self[:2])
        return Product(left / heads, right, self.cells)


class ScoreFactors(NamedTuple):
    """The scores of a block between two grids of tokens, in factors.

    ``S[q, k] = sum of products[q, k] + rows[q, row of k] + columns[q, column of k]``. A summand
    with a single head stands for all heads.

    Attributes:
        products: The products.
        rows: Term of the key's row, (B, heads or 1, queries, rows), or None.
        columns: Term of the key's column, (B, heads or 1, queries, columns), or None.
        queries: Height and width of the grid of queries.
        keys: Height and width of the grid of keys.
    """

    products: tuple[Product, ...]
    rows: Tensor | None
    columns: Tensor | None
    queries: tuple[int, int]
    keys: tuple[int, int]

    def scaled(self, factor: Tensor | float) -> 'ScoreFactors':
        """The scores times a number."""
        return self._replace(
            products=tuple(p._replace(left=p.left * factor) for p in self.products),
            rows=None if self.rows is None else self.rows * factor,
            columns=None if self.columns is None else self.columns * factor,
        )

    def plus(self, other: 'ScoreFactors') -> 'ScoreFactors':
        """The sum with scores between the same grids; products alike become one."""
        return self._replace(
            products=_merged((*self.products, *other.products)),
            rows=_sum(self.rows, other.rows),
            columns=_sum(self.columns, other.columns),
        )

    def parts(self, size: int) -> Iterator['ScoreFactors']:
        """The scores of ``size`` queries after another."""
        total = self.queries[0] * self.queries[1]
        for start in range(0, total, size):
            count = min(size, total - start)

            def cut(x: Tensor | None, start: int = start, count: int = count) -> Tensor | None:
                return None if x is None else x.narrow(2, start, count)

            yield ScoreFactors(
                tuple(p._replace(left=cut(p.left)) for p in self.products),
                cut(self.rows),
                cut(self.columns),
                (1, count),
                self.keys,
            )

    def dense(self) -> Tensor:
        """The scores, (B, heads or 1, queries, keys), in float32 at least."""
        total = None
        # those with all heads and all cells first: the others are added in place
        for product in sorted(self.products, key=_extent, reverse=True):
            scores = full_precision(product.left @ product.right.transpose(-2, -1))
            # (B, heads, queries, cells) -> (B, heads, queries, rows, 1, columns, 1)
            scores = scores.unflatten(3, (product.cells[0], 1, product.cells[1], 1))
            times = [k // c for k, c in zip(self.keys, product.cells)]
            if total is None:
                # -> (B, heads, queries, rows, times, columns, times) -> (..., keys)
                total = scores.expand(-1, -1, -1, -1, times[0], -1, times[1]).flatten(3)
            else:
                grid = total.unflatten(3, (product.cells[0], times[0], product.cells[1], times[1]))
                total = grid.add_(scores).flatten(3)
        # (B, heads, queries, keys) -> (B, heads, queries, key rows, key columns)
        grid = total.unflatten(3, self.keys)
        if self.rows is not None:
            grid = _add(grid, self.rows[..., :, None])
        if self.columns is not None:
            grid = _add(grid, self.columns[..., None, :])
        return grid.flatten(3)


# what one block hands to the next
Scores = ScoreGrid | ScoreFactors


def fit_factors(
    carried: ScoreFactors, heads: int, queries: tuple[int, int], keys: tuple[int, int]
) -> ScoreFactors:
    """Brings carried scores to another number of heads and to other grids.

    What :func:`~mmvit_ext.models.layers.score_grid.fit_scores` does to the scores themselves.

    Args:
        carried: The scores of the block before.
        heads: Heads of this block.
        queries: Height and width of this block's grid of queries.
        keys: Height and width of this block's grid of keys.

    Returns:
        The fitted scores, of the same numbers as the dense ones.
    """

    def fit_product(product: Product) -> Product:
        product = product if product.left.shape[1] in (1, heads) else product.joined()
        left = _fit_queries(product.left, carried.queries, queries)
        return _fit_cells(product, carried.keys, keys)._replace(left=left)

    def fit_term(term: Tensor | None, target: int) -> Tensor | None:
        if term is None:
            return None
        if term.shape[1] not in (1, heads):
            term = term.mean(dim=1, keepdim=True)
        return fit_axis(_fit_queries(term, carried.queries, queries), 3, target)

    return ScoreFactors(
        _merged(tuple(fit_product(product) for product in carried.products)),
        fit_term(carried.rows, keys[0]),
        fit_term(carried.columns, keys[1]),
        queries,
        keys,
    )


def dense_scores(
    carried: Scores, heads: int, queries: tuple[int, int], keys: tuple[int, int]
) -> Tensor:
    """Carried scores of either kind on the heads and grids of this block.

    Args:
        carried: The scores of the block before.
        heads: Heads of this block.
        queries: Height and width of this block's grid of queries.
        keys: Height and width of this block's grid of keys.

    Returns:
        (B, heads or 1, queries, keys).
    """
    if isinstance(carried, ScoreFactors):
        return fit_factors(carried, heads, queries, keys).dense()
    return fit_scores(carried, heads, queries, keys)


def _fit_queries(x: Tensor, source: tuple[int, int], target: tuple[int, int]) -> Tensor:
    """(B, heads, queries, any) on another grid of queries."""
    if source == target:
        return x
    # (B, heads, queries, any) -> (B, heads, rows, columns, any)
    grid = x.unflatten(2, source)
    return fit_axis(fit_axis(grid, 2, target[0]), 3, target[1]).flatten(2, 3)


def _fit_cells(product: Product, source: tuple[int, int], target: tuple[int, int]) -> Product:
    """The product on another grid of keys; cells that only repeat stay as they are."""
    # (B, heads, cells, rank) -> (B, heads, rows, columns, rank)
    grid = product.right.unflatten(2, product.cells)
    for axis in range(2):
        repeats = target[axis] % source[axis] == 0 or target[axis] == product.cells[axis]
        if not repeats:
            grid = fit_axis(fit_axis(grid, axis + 2, source[axis]), axis + 2, target[axis])
    return product._replace(right=grid.flatten(2, 3), cells=tuple(grid.shape[2:4]))


def _merged(products: tuple[Product, ...]) -> tuple[Product, ...]:
    """Products of as many heads and the same cells side by side, as one."""
    alike: dict[tuple, list[Product]] = {}
    for product in products:
        alike.setdefault((product.left.shape[1], product.cells), []).append(product)
    return tuple(_side_by_side(group) if len(group) > 1 else group[0] for group in alike.values())


def _side_by_side(products: list[Product]) -> Product:
    lefts, rights, cells = zip(*products)
    return Product(torch.cat(lefts, dim=-1), torch.cat(rights, dim=-1), cells[0])


def _extent(product: Product) -> tuple[int, int]:
    return product.left.shape[1], product.cells[0] * product.cells[1]


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return a if b is None else b
    return a + b


def _add(grid: Tensor, term: Tensor) -> Tensor:
    """Adds a term, in place unless it has more heads."""
    return grid.add_(term) if grid.shape[1] >= term.shape[1] else grid + term
