"""The choice between scores as they are and in factors."""

import pytest
import torch

from mmvit_ext.models.layers import checked_form, in_factors
from mmvit_ext.models.layers.score_form import DENSE_BYTES, KEPT, PASSING

FITS = DENSE_BYTES // 4 // PASSING


def test_what_fits_in_memory_is_dense():
    with torch.no_grad():
        assert in_factors('auto', [FITS, FITS + 1], [False, False]) == [False, True]


def test_blocks_before_one_in_factors_use_them_too():
    with torch.no_grad():
        counts, chained = [1, 1, FITS + 1, 1, 1], [False, True, True, True, False]
        assert in_factors('auto', counts, chained) == [False, True, True, False, False]


def test_a_backward_pass_keeps_scores_of_all_blocks():
    count = DENSE_BYTES // 4 // KEPT // 3
    assert in_factors('auto', [count] * 3, [True, True, False]) == [False] * 3
    assert in_factors('auto', [count] * 4, [True, True, True, False]) == [True] * 4


@pytest.mark.parametrize('form', ['dense', 'factored'])
def test_a_form_asked_for_is_taken(form):
    assert in_factors(form, [1, 2**60], [True, False]) == [form == 'factored'] * 2


def test_unknown_form_is_refused():
    with pytest.raises(
        ValueError, match="ReViT: scores='sparse': choose from auto, dense, factored"
    ):
        checked_form('ReViT', 'sparse')
