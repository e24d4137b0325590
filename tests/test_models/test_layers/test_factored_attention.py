"""Attention over factors against softmax over the scores."""

import pytest
import torch

from mmvit_ext.models.layers import Product, ScoreFactors, attend
from mmvit_ext.models.layers.factored_attention import attend_fused, attend_in_blocks, fused_rank

QUERIES, KEYS = (5, 4), (4, 6)


def make(**kwargs):
    """Scores of three heads with a shared, coarser product and position terms; and values."""
    factors = [
        torch.randn(2, heads, tokens, rank, dtype=torch.float64, **kwargs)
        for heads, tokens, rank in [
            (3, 20, 4),
            (3, 24, 4),
            (1, 20, 5),
            (1, 6, 5),
            (3, 20, 4),
            (1, 20, 6),
        ]
    ]
    q, k, p, r, rows, columns = factors
    products = (Product(q, k, KEYS), Product(p, r, (2, 3)))
    v = torch.randn(2, 3, 24, 7, dtype=torch.float64, **kwargs)
    return ScoreFactors(products, rows, columns, QUERIES, KEYS), v


def naive(scores, v):
    return scores.dense().softmax(-1) @ v


def leaves(scores, v):
    return [x for p in scores.products for x in p[:2]] + [scores.rows, scores.columns, v]


@pytest.mark.parametrize(
    'way',
    [
        attend,
        attend_fused,
        lambda scores, v: attend_in_blocks(scores, v, 500),
        lambda scores, v: attend_in_blocks(scores, v, 100),
        lambda scores, v: attend_in_blocks(scores, v, 1),
    ],
)
def test_values_and_gradients(way):
    scores, v = make(requires_grad=True)
    out, expected = way(scores, v), naive(scores, v)
    torch.testing.assert_close(out, expected)
    weight = torch.randn_like(out)
    ours = torch.autograd.grad((out * weight).sum(), leaves(scores, v))
    theirs = torch.autograd.grad((expected * weight).sum(), leaves(scores, v))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize('block', [100, 500, 1000])
def test_blocks_hold_no_more_scores_than_asked_for(block, monkeypatch):
    scores, v = make()
    counts = []
    dense = ScoreFactors.dense

    def watched(part):
        counts.append(dense(part).numel())
        return dense(part)

    monkeypatch.setattr(ScoreFactors, 'dense', watched)
    with torch.no_grad():
        attend_in_blocks(scores, v, block)
    assert max(counts) <= block and sum(counts) == 2 * 3 * 20 * 24


def test_backward_keeps_factors_only():
    scores, v = make(requires_grad=True)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        attend_in_blocks(scores, v, 100)
    assert {id(x) for x in kept} == {id(x) for x in leaves(scores, v)}


def test_backward_computes_under_the_same_autocast():
    scores, v = make(requires_grad=True)
    found = []
    for block in (10**6, 100):
        with torch.autocast('cpu', torch.bfloat16):
            out = attend_in_blocks(scores, v.float(), block)
        found.append(torch.autograd.grad(out.double().square().sum(), leaves(scores, v)))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, atol=0.05, rtol=0.05)


def test_rank_of_a_fused_head_is_aligned():
    scores, _ = make()
    assert fused_rank(scores) == 24  # 4 + 5 + 4 + 6, up to a multiple of 8


def test_fused_in_half_precision():
    scores, v = make()
    out = attend_fused(scores, v.bfloat16())
    assert out.dtype == torch.bfloat16 and out.shape == (2, 3, 20, 7)
    torch.testing.assert_close(out.double(), naive(scores, v), atol=0.1, rtol=0.1)
