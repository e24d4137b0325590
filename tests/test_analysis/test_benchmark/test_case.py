"""What a case does with a model."""

import pytest
import torch
import torch.nn as nn

from mmvit_ext.analysis.benchmark import Case, parse_shape
from mmvit_ext.errors import UsageError


class Spy(nn.Module):
    """Two maps of a convolution; notes how it was run."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        self.seen = []

    def forward(self, x):
        out = self.conv(x)
        if out.requires_grad:
            out.register_hook(lambda grad: self.seen.append(grad))
        self.seen.append((tuple(x.shape), self.training, torch.is_grad_enabled(), out.dtype))
        return out, out.mean(dim=1)


def test_forward():
    model = Spy()
    assert Case((2, 3, 4, 6)).step(model, torch.device('cpu'))() == 2
    assert model.seen == [((2, 3, 4, 6), False, False, torch.float32)]


def test_training_step():
    model = Spy()
    step = Case((2, 3, 4, 6), 'train').step(model, torch.device('cpu'))
    assert step() == 2
    forward, gradient = model.seen
    assert forward == ((2, 3, 4, 6), True, True, torch.float32)
    # of the mean of the map, and of the mean of its mean over channels: the same twice
    assert torch.allclose(gradient, torch.full((2, 4, 4, 6), 2 / (2 * 4 * 4 * 6)))
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize('dtype', ['bfloat16', 'float16'])
def test_half_numbers_run_under_autocast(dtype):
    model = Spy()
    Case((1, 3, 4, 4), 'forward', dtype).step(model, torch.device('cpu'))()
    assert model.seen[0][-1] == getattr(torch, dtype)
    assert model.conv.weight.dtype == torch.float32


def test_shape():
    assert parse_shape('1x3x800x1344') == (1, 3, 800, 1344)


@pytest.mark.parametrize('text', ['224', '1x3x224', '0x3x8x8', '1x4x8x8', '1x3x8x0', '1x3x-8x8'])
def test_other_shapes_are_told(text):
    with pytest.raises(UsageError, match=f'--shapes={text}: .*1x3x800x1344'):
        parse_shape(text)


def test_title_and_pixels():
    case = Case((1, 3, 8, 10), 'train')
    assert case.title() == '1 x 3 x 8 x 10, train, float32' and case.pixels == 80
