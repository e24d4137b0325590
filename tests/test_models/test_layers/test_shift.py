"""The shift against the paper's formula, written as slice copies."""

import pytest
import torch

from mmvit_ext.models.layers import shift_channels


def by_slices(x, group, p):
    """Channel groups copied into a zero tensor, as the authors describe it."""
    out = torch.zeros_like(x)
    g = group
    h, w = x.shape[2:]
    if p < w:
        out[:, :g, :, : w - p] = x[:, :g, :, p:]
        out[:, g : 2 * g, :, p:] = x[:, g : 2 * g, :, : w - p]
    if p < h:
        out[:, 2 * g : 3 * g, : h - p] = x[:, 2 * g : 3 * g, p:]
        out[:, 3 * g : 4 * g, p:] = x[:, 3 * g : 4 * g, : h - p]
    out[:, 4 * g :] = x[:, 4 * g :]
    return out


@pytest.mark.parametrize('pixels', [0, 1, 2, 9])
@pytest.mark.parametrize('size', [(7, 5), (1, 6), (6, 1), (1, 1), (2, 2)])
@pytest.mark.parametrize('channels, group', [(12, 1), (13, 3), (12, 3)])
def test_values(size, pixels, channels, group):
    x = torch.randn(2, channels, *size)
    expected = x if pixels == 0 else by_slices(x, group, pixels)
    assert torch.equal(shift_channels(x, group, pixels), expected)


def test_gradient_is_the_shift_back():
    x = torch.randn(1, 12, 5, 6, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda t: shift_channels(t, 2, 1), x)
