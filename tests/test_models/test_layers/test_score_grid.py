"""Carried scores brought to other grids: against torch's pooling and nearest neighbour."""

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from mmvit_ext.models.layers.score_grid import ScoreGrid, fit_scores


def carried_scores(heads, queries, keys, **kwargs):
    count = (queries[0] * queries[1], keys[0] * keys[1])
    return ScoreGrid(torch.randn(2, heads, *count, **kwargs), queries, keys)


def resampled(scores, source, target):
    """The last axis as a map of one channel, (..., source) -> (..., target), by torch's kernels.

    Torch's pooling takes both axes at once; an axis that grows is repeated behind it.
    """
    maps = scores.reshape(-1, 1, *source)
    smaller = [min(pair) for pair in zip(source, target)]
    maps = F.interpolate(F.adaptive_avg_pool2d(maps, smaller), target, mode='nearest')
    return maps.reshape(*scores.shape[:-1], target[0] * target[1])


GRIDS = [
    ((8, 12), (4, 6), (4, 6), (4, 6)),  # queries halve
    ((4, 6), (4, 6), (8, 12), (2, 3)),  # keys halve, with queries that grow
    ((8, 4), (2, 3), (4, 2), (4, 6)),  # queries halve, keys double
    ((9, 7), (5, 4), (5, 4), (9, 7)),  # odd sides, pooled cells overlap
    ((7, 3), (5, 8), (3, 5), (3, 9)),  # one axis grows, the other shrinks
    ((5, 5), (1, 4), (1, 1), (7, 4)),
]


@pytest.mark.parametrize('queries, keys, to_queries, to_keys', GRIDS)
def test_grids_are_fitted_as_torch_pools_and_repeats(queries, keys, to_queries, to_keys):
    carried = carried_scores(3, queries, keys)
    fitted = fit_scores(carried, 3, to_queries, to_keys)
    expected = resampled(carried.scores, keys, to_keys).transpose(2, 3)
    expected = resampled(expected, queries, to_queries).transpose(2, 3)
    torch.testing.assert_close(fitted, expected, atol=1e-6, rtol=1e-5)


def test_whole_ratios_are_plain_average_pooling():
    carried = carried_scores(1, (4, 6), (3, 2))
    fitted = fit_scores(carried, 1, (2, 3), (3, 2))
    maps = carried.scores.transpose(2, 3).reshape(-1, 1, 4, 6)
    expected = F.avg_pool2d(maps, 2).reshape(2, 1, 6, 6).transpose(2, 3)
    torch.testing.assert_close(fitted, expected)


def test_other_number_of_heads_gets_the_mean_as_one_head():
    carried = carried_scores(4, (2, 2), (2, 3))
    fitted = fit_scores(carried, 8, (2, 2), (2, 3))
    torch.testing.assert_close(fitted, carried.scores.mean(dim=1, keepdim=True))
    # one head is broadcast as it is, and nothing is copied without need
    single = carried_scores(1, (2, 2), (2, 3))
    assert fit_scores(single, 8, (2, 2), (2, 3)) is single.scores
    assert fit_scores(carried, 4, (2, 2), (2, 3)) is carried.scores


@pytest.mark.parametrize('queries, keys, to_queries, to_keys', GRIDS)
def test_every_target_cell_is_a_mean_and_gradients_are_right(queries, keys, to_queries, to_keys):
    ones = carried_scores(2, queries, keys)._replace(
        scores=torch.ones(1, 2, queries[0] * queries[1], keys[0] * keys[1])
    )
    fitted = fit_scores(ones, 2, to_queries, to_keys)
    torch.testing.assert_close(fitted, torch.ones_like(fitted))
    carried = carried_scores(1, queries, keys)
    scores = carried.scores.requires_grad_()
    weight = torch.randn(2, 1, to_queries[0] * to_queries[1], to_keys[0] * to_keys[1])
    (fit_scores(carried, 1, to_queries, to_keys) * weight).sum().backward()
    twin = scores.detach().clone().requires_grad_()
    expected = resampled(resampled(twin, keys, to_keys).transpose(2, 3), queries, to_queries)
    (expected.transpose(2, 3) * weight).sum().backward()
    torch.testing.assert_close(scores.grad, twin.grad, atol=1e-5, rtol=1e-5)


class Fit(nn.Module):
    """Odd sides, so that both whole and other ratios occur."""

    def forward(self, scores):
        return fit_scores(ScoreGrid(scores, (9, 4), (5, 3)), 4, (5, 8), (9, 3))


def test_meta_compiled_and_autocast():
    scores = torch.randn(1, 2, 36, 15)
    expected = Fit()(scores)
    assert Fit()(scores.to('meta')).shape == expected.shape == (1, 1, 40, 27)
    compiled = torch.compile(Fit(), backend='eager', dynamic=False, fullgraph=True)
    torch.testing.assert_close(compiled(scores), expected)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        assert torch.equal(Fit()(scores), expected)
    assert Fit()(scores.double()).dtype == torch.float64


def test_exported_graph_holds_no_float64():
    graph = torch.export.export(Fit(), (torch.randn(1, 2, 36, 15),)).graph
    values = [node.meta.get('val') for node in graph.nodes]
    assert torch.float64 not in {v.dtype for v in values if isinstance(v, torch.Tensor)}
