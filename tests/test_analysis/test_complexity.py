"""Parameters and multiply-adds of small networks, worked out by hand, and of one by hooks."""

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from mmengine.registry import MODELS

from mmvit_ext.analysis import Complexity, count
from mmvit_ext.models.layers import BlockCirculant, resize_grid, shift_channels


class ConvAttention(nn.Module):
    """A convolution with stride 4, one head of attention over its cells, a linear layer."""

    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.conv = nn.Conv2d(3, 8, 4, stride=4)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        tokens = self.norm(self.conv(x).flatten(2).transpose(1, 2))
        if self.fused:
            out = F.scaled_dot_product_attention(tokens, tokens, tokens)
        else:
            scores = torch.einsum('nqc,nkc->nqk', tokens, tokens)
            out = scores.softmax(dim=-1) @ tokens
        return self.head(out.mean(dim=1))


class Shift(nn.Module):
    def forward(self, x):
        return shift_channels(x.repeat(1, 2, 1, 1), 1, 1)


class Position(nn.Module):
    """A resampled position table in front of a convolution of one pixel."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1, 3, 4, 4))
        self.conv = nn.Conv2d(3, 2, 1, bias=False)

    def forward(self, x):
        return self.conv(x + resize_grid(self.table, tuple(x.shape[2:])))


class Tokens(nn.Module):
    """A circulant layer over the pixels of each of the three channels."""

    def __init__(self, form):
        super().__init__()
        self.layer = BlockCirculant(16, 32, 4, form)

    def forward(self, x):
        return self.layer(x.flatten(2))


@pytest.mark.parametrize('fused', [False, True])
def test_convolution_attention_and_linear_layer(fused):
    cells = (8 // 4) * (12 // 4)
    products = cells * 8 * 3 * 16 + 2 * cells * cells * 8 + 8 * 5
    parameters = (8 * 3 * 16 + 8) + 2 * 8 + (8 * 5 + 5)
    assert count(ConvAttention(fused), (8, 12)) == Complexity(parameters, products)


def test_shift_is_free():
    assert count(Shift(), (8, 8)) == Complexity(0, 0)


def test_resampled_table_is_no_work_of_the_image():
    assert count(Position(), (8, 8)) == Complexity(3 * 16 + 6, 64 * 3 * 2)


@pytest.mark.parametrize(
    ('form', 'products'),
    [
        ('materialised', 3 * 16 * 32),
        # blocks of 4 have 3 frequencies: transforms there, 2 x 2 numbers a frequency, and back
        ('fourier', 3 * (4 * 4 * 6 + 3 * (4 * 2) * (8 * 2) + 8 * 6 * 4)),
    ],
)
def test_circulant_layer_costs_what_its_form_computes(form, products):
    assert count(Tokens(form), (4, 4)) == Complexity(8 * 4 * 4 + 32, products)


def test_classifier():
    assert Complexity(1, 2).with_classifier(3, 10) == Complexity(1 + 30 + 10, 2 + 30)


def test_model_is_left_as_it_is():
    model = ConvAttention(fused=False).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    count(model, (8, 8))
    assert model.training and not model._forward_hooks
    for name, value in model.state_dict().items():
        assert value.device.type == 'cpu' and torch.equal(value, before[name])


def hooked(model, x):
    """Multiply-adds of convolutions and linear layers in a real run."""
    products = []

    def add(layer, _, out):
        if isinstance(layer, nn.Conv2d):
            products.append(out.numel() * layer.weight[0].numel())
        elif isinstance(layer, nn.Linear):
            products.append(out.numel() * layer.in_features)

    for layer in model.modules():
        layer.register_forward_hook(add)
    with torch.no_grad():
        model.eval()(x)
    return sum(products)


@pytest.mark.parametrize('built_on', ['cpu', 'meta'])
def test_shiftvit_as_hooks_count_it(built_on):
    cfg = {'type': 'mmvit_ext.ShiftViT', 'arch': 'nano'}
    with torch.device(built_on):
        counted = count(MODELS.build(cfg), (65, 97))
    model = MODELS.build(cfg)
    assert counted.multiply_adds == hooked(model, torch.zeros(1, 3, 65, 97))
    assert counted.parameters == sum(p.numel() for p in model.parameters())


def test_swin_as_hooks_and_its_windows_count_it():
    model = MODELS.build({'type': 'mmvit_ext.ReSwin', 'arch': 'nano', 'window_size': 4})
    # maps of 16, 8, 4 and 2 cells a side, the last padded to one window; two products of
    # attention in each of two blocks
    tokens = [(cells, 48 * 2**i) for i, cells in enumerate((256, 64, 16, 16))]
    attention = sum(2 * 2 * cells * 16 * channels for cells, channels in tokens)
    layers = hooked(model, torch.zeros(1, 3, 64, 64))
    assert count(model, (64, 64)).multiply_adds == layers + attention
