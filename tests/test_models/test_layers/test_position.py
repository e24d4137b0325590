"""Position tables against torch's interpolation and timm's tables."""

import pytest
import timm.layers
import torch
import torch.nn.functional as F

from mmvit_ext.models.layers import relative_position_index, resize_bias_table, resize_grid


@pytest.mark.parametrize('window', [1, 2, 7])
def test_index_picks_the_row_of_the_offset(window):
    index = relative_position_index(window)
    side = 2 * window - 1
    for query in range(window**2):
        for key in range(window**2):
            dy = query // window - key // window
            dx = query % window - key % window
            assert index[query, key] == (dy + window - 1) * side + dx + window - 1


@pytest.mark.parametrize('size', [(14, 14), (5, 23), (1, 1), (3, 7), (61, 8)])
def test_resize_equals_bicubic_interpolation(size):
    x = torch.randn(2, 3, 7, 9, requires_grad=True)
    ours, theirs = resize_grid(x, size), F.interpolate(x, size, mode='bicubic')
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    weight = torch.randn_like(ours)
    gradient = [torch.autograd.grad((y * weight).sum(), x)[0] for y in (ours, theirs)]
    torch.testing.assert_close(*gradient, atol=1e-4, rtol=1e-5)


def test_resize_runs_in_float32_under_autocast_and_for_half_tables():
    x = torch.randn(1, 2, 7, 7)
    with torch.autocast('cpu', torch.bfloat16):
        assert torch.equal(resize_grid(x, (9, 9)), resize_grid(x.clone(), (9, 9)))
        assert resize_grid(x, (9, 9)).dtype == torch.float32
    half = resize_grid(x.half(), (9, 9))
    torch.testing.assert_close(half, resize_grid(x.half().float(), (9, 9)).half())


def test_bias_table_is_resampled_by_head():
    table = torch.randn(13 * 13, 4)
    resized = resize_bias_table(table, 12)
    grid = table.T.reshape(1, 4, 13, 13)
    expected = F.interpolate(grid, (23, 23), mode='bicubic')[0].flatten(1).T
    torch.testing.assert_close(resized, expected, atol=1e-5, rtol=1e-5)
    flat = timm.layers.resize_rel_pos_bias_table_simple(
        torch.full((169, 4), 0.7), (12, 12), (23 * 23, 4)
    )
    torch.testing.assert_close(resize_bias_table(torch.full((169, 4), 0.7), 12), flat)


def test_bias_table_of_no_square_window_is_refused():
    with pytest.raises(ValueError, match='170 rows'):
        resize_bias_table(torch.zeros(170, 3), 7)
