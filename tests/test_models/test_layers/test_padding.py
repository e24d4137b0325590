"""Padding against mmcv's own for patch embeddings."""

import pytest
import torch
from mmcv.cnn.bricks.transformer import AdaptivePadding

from mmvit_ext.models.layers import pad_to_multiple


@pytest.mark.parametrize('size', [(1, 1), (4, 4), (5, 31), (8, 7)])
def test_pads_right_and_bottom_as_mmcv(size):
    x = torch.randn(2, 3, *size)
    expected = AdaptivePadding(kernel_size=4, stride=4, padding='corner')(x)
    assert torch.equal(pad_to_multiple(x, 4), expected)
    last = pad_to_multiple(x.permute(0, 2, 3, 1), 4, channels_last=True)
    assert torch.equal(last.permute(0, 3, 1, 2), expected)
