"""Scores in factors against the scores themselves."""

import pytest
import torch

from mmvit_ext.models.layers import (
    Product,
    ResidualAttention,
    ScoreFactors,
    ScoreGrid,
    fit_factors,
    fit_scores,
)

DOUBLE = {'dtype': torch.float64}


def make(heads, queries, keys, rank=3, terms=True, **kwargs):
    """Random factors of scores between two grids, for two images."""
    q, k = queries[0] * queries[1], keys[0] * keys[1]
    product = Product(
        torch.randn(2, heads, q, rank, **DOUBLE, **kwargs),
        torch.randn(2, heads, k, rank, **DOUBLE, **kwargs),
        keys,
    )
    rows, columns = (torch.randn(2, heads, q, side, **DOUBLE) if terms else None for side in keys)
    return ScoreFactors((product,), rows, columns, queries, keys)


def naive(factors):
    """The scores, summand by summand, with a loop over pairs of tokens."""
    q, k = (side[0] * side[1] for side in (factors.queries, factors.keys))
    total = 0
    for left, right, cells in factors.products:
        columns = [
            (i // factors.keys[1]) * cells[0] // factors.keys[0] * cells[1]
            + (i % factors.keys[1]) * cells[1] // factors.keys[1]
            for i in range(k)
        ]
        total = total + torch.einsum('bhqr,bhkr->bhqk', left, right[:, :, columns])
    if factors.rows is not None:
        total = total + factors.rows[..., [i // factors.keys[1] for i in range(k)]]
    if factors.columns is not None:
        total = total + factors.columns[..., [i % factors.keys[1] for i in range(k)]]
    assert total.shape[2:] == (q, k)
    return total


@pytest.mark.parametrize('terms', [True, False])
@pytest.mark.parametrize('heads', [1, 4])
def test_dense_is_the_sum(heads, terms):
    factors = make(heads, (3, 4), (2, 5), terms=terms)
    torch.testing.assert_close(factors.dense(), naive(factors))


CHAINS = [
    # grids of queries and keys, and heads, of one block after another
    [(1, (4, 6), (2, 3)), (2, (2, 3), (4, 6)), (2, (2, 3), (2, 3)), (4, (2, 3), (4, 6))],
    [(1, (7, 5), (2, 2)), (2, (4, 3), (4, 3)), (2, (4, 3), (2, 2)), (4, (2, 2), (4, 3))],
    [(3, (5, 5), (5, 5)), (3, (5, 5), (10, 7)), (6, (3, 3), (4, 4)), (6, (3, 3), (8, 8))],
    [(2, (4, 4), (3, 3)), (1, (4, 4), (6, 9)), (4, (4, 4), (3, 9)), (2, (2, 2), (6, 3))],
]


@pytest.mark.parametrize('terms', [True, False])
@pytest.mark.parametrize('chain', CHAINS)
def test_a_chain_in_factors_equals_the_chain_of_scores(chain, terms):
    gate = ResidualAttention(0.37, learnable=True).double()
    factored = scores = None
    for heads, queries, keys in chain:
        own = make(heads, queries, keys, terms=False)
        position = make(heads, queries, keys, rank=1)._replace(products=())
        dense = naive(own)
        if scores is not None:
            dense = gate(dense, fit_scores(scores, heads, queries, keys))
            torch.testing.assert_close(
                fit_factors(factored, heads, queries, keys).dense().expand_as(dense),
                fit_scores(scores, heads, queries, keys).expand_as(dense),
            )
            own = gate.mix_factors(own, fit_factors(factored, heads, queries, keys))
        if terms:
            own = own.plus(position)
            dense = dense + naive(position)
        torch.testing.assert_close(own.dense(), dense)
        torch.testing.assert_close(own.dense(), naive(own))
        factored, scores = own, ScoreGrid(dense, queries, keys)


def test_cells_that_only_repeat_are_not_stored():
    factors = fit_factors(make(1, (4, 4), (2, 3)), 2, (2, 2), (4, 9))
    (product,) = factors.products
    assert product.cells == (2, 3) and product.right.shape == (2, 1, 6, 3)
    back = fit_factors(factors, 2, (2, 2), (2, 3))
    assert back.products[0].right is not None and back.products[0].cells == (2, 3)
    torch.testing.assert_close(back.products[0].right, product.right)


def test_products_alike_become_one():
    own, shared = make(2, (2, 2), (3, 3), terms=False), make(1, (2, 2), (3, 3), terms=False)
    joined = own.plus(shared).plus(own).plus(shared)
    assert [p.left.shape[1:] for p in joined.products] == [(2, 4, 6), (1, 4, 6)]
    torch.testing.assert_close(joined.dense(), 2 * naive(own) + 2 * naive(shared))


def test_mean_over_heads_joins_factors():
    factors = make(4, (2, 2), (3, 3))
    fitted = fit_factors(factors, 8, (2, 2), (3, 3))
    assert fitted.products[0].left.shape == (2, 1, 4, 12)
    torch.testing.assert_close(fitted.dense(), naive(factors).mean(1, keepdim=True))


def test_terms_with_more_heads_than_products():
    factors = make(1, (2, 3), (3, 2), terms=False)
    terms = make(4, (2, 3), (3, 2))._replace(products=())
    torch.testing.assert_close(factors.plus(terms).dense(), naive(factors) + naive(terms))


@pytest.mark.parametrize('dim, size', [(0, 1), (0, 2), (1, 1), (2, 4)])
def test_parts_are_cut_along_one_dimension(dim, size):
    factors = make(2, (3, 3), (2, 2)).plus(make(1, (3, 3), (2, 2), terms=False))
    parts = factors.split(size, dim)
    assert len(parts) == -(-(2, 2, 9)[dim] // size)
    torch.testing.assert_close(torch.cat([p.dense() for p in parts], dim), naive(factors))
    if dim == 2:
        assert [p.queries for p in parts] == [(1, 4), (1, 4), (1, 1)]


def test_heads_one_after_another():
    coarse = fit_factors(make(1, (3, 3), (2, 2)), 4, (3, 3), (4, 6))
    factors = make(4, (3, 3), (4, 6)).plus(make(1, (3, 3), (4, 6))).plus(coarse)
    heads = [head.dense() for head in factors.each_head()]
    torch.testing.assert_close(torch.cat(heads, 1), naive(factors))


def test_products_of_several_cells():
    factors = make(2, (3, 3), (12, 12)).plus(make(1, (3, 3), (12, 12), terms=False))
    for cells in ((4, 6), (6, 4), (12, 3)):
        coarse = make(1, (3, 3), cells, terms=False)
        factors = factors.plus(fit_factors(coarse, 2, (3, 3), (12, 12)))
    assert len(factors.products) == 5
    torch.testing.assert_close(factors.dense(), naive(factors))
    without = factors._replace(rows=None, columns=None)
    torch.testing.assert_close(without.dense(), naive(without))


def test_alpha_one_leaves_own_scores():
    own, carried = make(2, (2, 2), (3, 3)), make(2, (2, 2), (3, 3))
    assert ResidualAttention(1.0).mix_factors(own, carried) is own


def test_half_precision_is_summed_in_float32():
    factors = make(2, (4, 4), (4, 4))
    half = ScoreFactors(
        tuple(Product(p.left.bfloat16(), p.right.bfloat16(), p.cells) for p in factors.products),
        factors.rows.bfloat16(),
        factors.columns.bfloat16(),
        factors.queries,
        factors.keys,
    )
    dense = half.dense()
    assert dense.dtype == torch.float32
    torch.testing.assert_close(dense.double(), naive(factors), atol=0.1, rtol=0.05)
