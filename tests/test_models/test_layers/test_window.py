"""Windows and their mask against plain loops."""

import numpy as np
import pytest
import torch

from mmvit_ext.models.layers import shift_mask, window_partition, window_reverse
from mmvit_ext.models.layers.window import _cached_shift_mask


def test_partition_cuts_row_by_row():
    x = torch.arange(2 * 4 * 6).view(2, 4, 6, 1)
    windows = window_partition(x, 2)
    expected = [
        x[n, i : i + 2, j : j + 2].reshape(4, 1)
        for n in range(2)
        for i in range(0, 4, 2)
        for j in range(0, 6, 2)
    ]
    assert torch.equal(windows, torch.stack(expected))


def test_reverse_undoes_partition():
    x = torch.randn(3, 14, 21, 5)
    assert torch.equal(window_reverse(window_partition(x, 7), 7, 14, 21), x)


@pytest.mark.parametrize('h, w, window, shift', [(14, 21, 7, 3), (8, 8, 4, 2), (14, 14, 7, 1)])
def test_mask_separates_what_was_not_adjacent(h, w, window, shift):
    mask = shift_mask(torch.zeros(1, h, w, 1), window, shift).numpy()
    # each pixel's place before the roll; neighbours in a window must lie within a window then
    y, x = np.meshgrid((np.arange(h) + shift) % h, (np.arange(w) + shift) % w, indexing='ij')
    index = 0
    for i in range(0, h, window):
        for j in range(0, w, window):
            ys, xs = y[i : i + window, j : j + window], x[i : i + window, j : j + window]
            ys, xs = ys.ravel(), xs.ravel()
            near = (abs(ys[:, None] - ys) < window) & (abs(xs[:, None] - xs) < window)
            assert np.array_equal(mask[index] == 0, near)
            assert set(np.unique(mask[index])) <= {0.0, -100.0}
            index += 1


def test_mask_is_cached_and_the_cache_holds_real_tensors_only():
    _cached_shift_mask.cache_clear()
    x = torch.zeros(1, 14, 14, 1)
    with torch.inference_mode():
        first = shift_mask(x, 7, 3)
    assert shift_mask(x, 7, 3) is first
    assert not first.is_inference()
    with torch._subclasses.FakeTensorMode() as mode:
        shift_mask(mode.from_tensor(torch.zeros(1, 21, 21, 1)), 7, 3)
    assert type(shift_mask(torch.zeros(1, 21, 21, 1), 7, 3)) is torch.Tensor


def test_mask_of_half_precision_maps_is_float32():
    assert shift_mask(torch.zeros(1, 14, 14, 1).half(), 7, 3).dtype == torch.float32
    assert shift_mask(torch.zeros(1, 14, 14, 1).double(), 7, 3).dtype == torch.float64
