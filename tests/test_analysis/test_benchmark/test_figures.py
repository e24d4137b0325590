"""Figures from made-up times and sizes."""

import pytest

from mmvit_ext.analysis.benchmark import Case, Result, Row
from mmvit_ext.analysis.benchmark.figures import Figures, figures_of, median_ratio
from mmvit_ext.analysis.benchmark.memory import Memory


def result(mode='forward'):
    rows = [
        Row('a:a', 10, 50, 4, [1.0, 2.0, 3.0, 4.0, 5.0], Memory(100, 40)),
        # half of the first in three of the rounds
        Row('b:b', 10, None, 4, [0.5, 1.0, 6.0, 2.0, 50.0], Memory(90, 10)),
        Row('c:c', 10, 50, reason='too small'),
        Row('d:d', 10, 100, 1, [1.0] * 5, Memory(80, None)),
    ]
    return Result(Case((2, 3, 8, 8), mode), 1000, [0.1, 0.2, 0.3, 0.4, 0.5], rows)


def test_median_spread_and_ratios():
    first, second, absent, fourth = figures_of(result())
    assert (first.seconds, first.spread, first.ratio) == (3.0, 2 / 3, 1.0)
    assert (second.seconds, second.spread, second.ratio) == (2.0, 5.0 / 2.0, 0.5)
    assert (first.memory_ratio, second.memory_ratio) == (1.0, 0.25)
    assert absent == Figures()
    assert fourth.memory_ratio is None and fourth.ratio == pytest.approx(1 / 3)


def test_share_of_the_matrix_product():
    first, second, _, fourth = figures_of(result())
    # two images of 50 in ten times the time of 1000
    assert first.product_share == pytest.approx(2 * 50 / 1000 / 10)
    assert second.product_share is None
    assert fourth.product_share == pytest.approx(2 * 100 / 1000 * 0.3)
    training = figures_of(result('train'))[0]
    assert training.product_share == pytest.approx(3 * first.product_share)


def test_ratios_are_taken_round_by_round():
    # a machine that gets slower and slower changes no ratio
    assert median_ratio([2.0, 4.0, 80.0], [1.0, 2.0, 40.0]) == 2.0
    assert median_ratio([2.0], []) is None


def test_without_a_first_there_are_times_but_no_ratios():
    found = result()
    found.rows[0] = Row('a:a', 10, 50, reason='too small')
    second = figures_of(found)[1]
    assert second.seconds == 2.0 and second.ratio is None and second.memory_ratio is None
