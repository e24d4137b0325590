"""Attention scores as sums of products, so that the matrix of scores never has to exist.

Everything that residual attention does to scores (ReViT, arXiv 2402.11301) is linear: mixing, the
mean over heads, pooling and repeating cells of a grid, adding position terms that depend on the
key's row or column alone. It can therefore be done to the factors: ``a Q K^T + (1 - a) P R^T`` is
``[a Q | (1 - a) P] [K | R]^T``. Memory is (queries + keys) * rank instead of queries * keys.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .precision import full_precision
from .score_grid import ScoreGrid, fit_axis


class Product(NamedTuple):
    """One summand of the scores: ``left @ right^T``, with each cell of ``right`` repeated.

    Attributes:
        left: Factor of the queries, (B, heads or 1, queries, rank); the product itself,
            (B, heads or 1, queries, cells), where ``right`` is None.
        right: Factor of the keys, (B, heads or 1, cells, rank), or None.
        cells: Height and width of the grid of ``right``; both divide those of the keys. A grid
            that grew by whole numbers is not repeated until the product is there.
    """

    left: Tensor
    right: Tensor | None
    cells: tuple[int, int]

    def joined(self) -> 'Product':
        """The mean over heads as one product: the heads' factors side by side."""
        heads = self.left.shape[1]
        # (B, heads, tokens, rank) -> (B, 1, tokens, heads * rank)
        left, right = (x.transpose(1, 2).flatten(2).unsqueeze(1) for x in self[:2])
        return Product(left / heads, right, self.cells)

    def multiplied(self) -> Tensor:
        """(B, heads or 1, queries, cells), in float32 at least."""
        if self.right is None:
            return self.left
        return full_precision(self.left @ self.right.transpose(-2, -1))


class ScoreFactors(NamedTuple):
    """The scores of a block between two grids of tokens, in factors.

    ``S[q, k] = sum of products[q, k] + rows[q, row of k] + columns[q, column of k]``. A summand
    with a single head stands for all heads.

    Attributes:
        products: The products.
        rows: Term of the key's row, (B, heads or 1, queries, rows), or None.
        columns: Term of the key's column, (B, heads or 1, queries, columns); None without rows.
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

    def tensors(self) -> list[Tensor]:
        """All tensors, for :meth:`with_tensors`."""
        factors = [x for product in self.products for x in product[:2]]
        return factors + [x for x in (self.rows, self.columns) if x is not None]

    def with_tensors(self, tensors: Sequence[Tensor]) -> 'ScoreFactors':
        """The same sum of other tensors, in the order of :meth:`tensors`."""
        pairs = zip(tensors[::2], tensors[1::2])
        products = tuple(p._replace(left=a, right=b) for p, (a, b) in zip(self.products, pairs))
        rows, columns = (None, None) if self.rows is None else tensors[-2:]
        return self._replace(products=products, rows=rows, columns=columns)

    def split(self, size: int, dim: int) -> list['ScoreFactors']:
        """Parts of ``size`` images (dim 0), heads (dim 1) or queries (dim 2) one after another.

        Pieces of one split, since the gradient of a slice is as large as what it was cut from.
        """
        summands = [p.left for p in self.products] + [self.rows, self.columns]
        total = max(x.shape[dim] for x in summands if x is not None)
        count = -(-total // size)

        def cut(x: Tensor | None, shared: bool = False) -> Sequence[Tensor | None]:
            shared = shared or x is None or x.shape[dim] < total
            return [x] * count if shared else x.split(size, dim)

        pieces = [
            [Product(*piece, p.cells) for piece in zip(cut(p.left), cut(p.right, dim == 2))]
            for p in self.products
        ]
        parts = []
        for *products, rows, columns in zip(*pieces, cut(self.rows), cut(self.columns)):
            queries = (1, products[0].left.shape[2]) if dim == 2 else self.queries
            parts.append(ScoreFactors(tuple(products), rows, columns, queries, self.keys))
        return parts

    def each_head(self) -> list['ScoreFactors']:
        """The scores of one head after another; what heads share is multiplied once."""
        heads = max(p.left.shape[1] for p in self.products)
        products = tuple(
            Product(p.multiplied(), None, p.cells) if p.left.shape[1] < heads else p
            for p in self.products
        )
        return self._replace(products=products).split(1, dim=1)

    def dense(self) -> Tensor:
        """The scores, (B, heads or 1, queries, keys), in float32 at least."""
        fine = [p for p in self.products if p.cells == self.keys]
        total = self._coarse()
        # what is multiplied already belongs to other heads too, and must not be added to
        for product in sorted(fine, key=_weight, reverse=True):
            total = product.multiplied() if total is None else _plus(total, product)
        return total

    def _coarse(self) -> Tensor | None:
        """The sum of all but the products with a cell for each key; None if there is none."""
        coarse = [p for p in self.products if p.cells != self.keys]
        cells = coarse[0].cells if coarse else self.keys
        # each (B, heads, queries, cell rows, rows in a cell, cell columns, columns in a cell)
        summands = [p.multiplied().unflatten(3, (cells[0], 1, cells[1], 1)) for p in coarse[:1]]
        if self.rows is not None:
            summands.append(self.rows.unflatten(3, (cells[0], -1))[..., None, None])
            summands.append(self.columns.unflatten(3, (cells[1], -1))[..., None, None, :, :])
        if not summands:
            return None
        # the small ones first
        total = _spread(full_precision(sum(summands[1:], summands[0])), cells, self.keys)
        for product in coarse[1:]:
            rows, columns = product.cells
            scores = product.multiplied().unflatten(3, (rows, 1, columns, 1))
            total = total + _spread(scores, product.cells, self.keys)
        return total


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


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return a if b is None else b
    return a + b


def _weight(product: Product) -> tuple[int, bool]:
    return product.left.shape[1], product.right is not None


def _spread(grid: Tensor, cells: tuple[int, int], keys: tuple[int, int]) -> Tensor:
    """(B, heads, queries, cell rows, 1 or more, cell columns, 1 or more) -> (..., keys)."""
    times = [k // c for k, c in zip(keys, cells)]
    return grid.expand(-1, -1, -1, cells[0], times[0], cells[1], times[1]).flatten(3)


def _plus(total: Tensor, product: Product) -> Tensor:
    """Adds a product, in place where no gradient is recorded: what is added to is new."""
    left, right, _ = product
    recorded = torch.is_grad_enabled()
    alike = right is not None and left.shape[1] == total.shape[1]
    if alike and left.dtype == right.dtype == total.dtype:
        add = Tensor.baddbmm if recorded else Tensor.baddbmm_
        # (B, heads, tokens, rank) -> (B * heads, tokens, rank)
        left, right = left.flatten(0, 1), right.flatten(0, 1)
        return add(total.flatten(0, 1), left, right.transpose(1, 2)).view(total.shape)
    scores = product.multiplied()
    if recorded or scores.shape[1] > total.shape[1]:
        return total + scores
    return total.add_(scores)
