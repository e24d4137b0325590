"""Both forms of the circulant product against scipy's matrices and torch's FFT."""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.nn as nn
from scipy.linalg import circulant

from mmvit_ext.models.layers import BlockCirculant
from mmvit_ext.models.layers.circulant import FOURIER_FROM, real_dft

# even and odd sides, side 1 (a dense matrix) and side 2 (no frequency between the ends)
SHAPES = [(24, 48, 6), (20, 20, 5), (6, 4, 1), (8, 4, 2), (96, 96, 24), (384, 768, 96)]


def pair(shape):
    """The two forms with equal weights."""
    fourier = BlockCirculant(*shape, form='fourier')
    dense = BlockCirculant(*shape, form='materialised')
    dense.load_state_dict(fourier.state_dict(), strict=True)
    return fourier, dense


def matrix(layer):
    """P, put together by scipy: ``circulant(w)[r, c] = w[(r - c) mod k]``."""
    weight = layer.weight.detach().numpy()
    return np.block([[circulant(vector) for vector in row] for row in weight])


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('mode', ['train', 'eval'])
def test_both_forms_equal_scipy(shape, mode):
    x = torch.randn(3, 7, shape[0])
    for layer in pair(shape):
        layer.train(mode == 'train')
        expected = x.numpy() @ matrix(layer).T + layer.bias.detach().numpy()
        with torch.set_grad_enabled(mode == 'train'):
            out = layer(x).detach()
        torch.testing.assert_close(out, torch.from_numpy(expected), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('shape', SHAPES)
def test_forms_agree_in_value_and_gradient(shape):
    layers, results = pair(shape), []
    for layer in layers:
        x = torch.randn(5, shape[0], generator=torch.Generator().manual_seed(1), requires_grad=True)
        out = layer(x)
        (out * torch.sin(torch.arange(out.numel()).view_as(out))).sum().backward()
        results.append((out.detach(), x.grad, layer.weight.grad, layer.bias.grad))
    for a, b in zip(*results):
        assert (a - b).abs().max() <= 1e-5 * max(1, b.abs().max())


def test_forms_agree_in_double_precision():
    fourier, dense = (layer.double() for layer in pair((24, 48, 6)))
    x = torch.randn(4, 24, dtype=torch.float64)
    # the transform's matrix was born in float32
    torch.testing.assert_close(fourier(x), dense(x), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize('side', [1, 2, 7, 96])
def test_transform_is_torchs(side):
    x = torch.randn(4, side)
    real, imaginary = (x @ real_dft(side)).chunk(2, dim=-1)
    expected = torch.fft.rfft(x)
    torch.testing.assert_close(real, expected.real, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(imaginary, expected.imag, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('form', ['fourier', 'materialised'])
def test_eval_builds_once_and_notices_changes(form, monkeypatch):
    layer, builds = BlockCirculant(8, 8, 4, form=form).eval(), []
    build = layer._build
    monkeypatch.setattr(layer, '_build', lambda: builds.append(1) or build())
    x = torch.randn(2, 8)
    with torch.no_grad():
        first = layer(x)
        layer(x)
        assert len(builds) == 1
        layer.weight.mul_(2)
        torch.testing.assert_close(layer(x) - layer.bias, 2 * (first - layer.bias))
        assert len(builds) == 2
        layer.load_state_dict({k: torch.zeros_like(v) for k, v in layer.state_dict().items()})
        assert torch.equal(layer(x), torch.zeros(2, 8))
        layer.train().eval()
        assert layer._kept is None


@pytest.mark.parametrize('form', ['fourier', 'materialised'])
def test_gradient_reaches_the_weight_in_eval_mode_too(form):
    layer = BlockCirculant(8, 8, 4, form=form).eval()
    with torch.no_grad():
        layer(torch.randn(2, 8))
    layer(torch.randn(2, 8)).sum().backward()
    assert layer.weight.grad.abs().sum() > 0


@pytest.mark.parametrize('form', ['fourier', 'materialised'])
def test_kept_in_inference_mode_serves_training_later(form):
    layer = BlockCirculant(8, 8, 4, form=form).eval()
    with torch.inference_mode():
        layer(torch.randn(2, 8))
    layer.requires_grad_(False)
    x = torch.randn(2, 8, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize('form', ['fourier', 'materialised'])
def test_copies_hold_nothing_kept(form):
    layer = BlockCirculant(8, 8, 4, form=form).eval()
    x = torch.randn(2, 8)
    with torch.no_grad():
        expected = layer(x)
        for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert twin._kept is None and torch.equal(twin(x), expected)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
@pytest.mark.parametrize('form', ['fourier', 'materialised'])
def test_half_precision_by_autocast_and_by_weights(form, dtype):
    layer = BlockCirculant(96, 96, 24, form=form)
    x = torch.randn(4, 96)
    expected = layer(x)
    with torch.autocast('cpu', dtype):
        torch.testing.assert_close(layer(x).float(), expected, atol=0.05, rtol=0.05)
    out = layer.to(dtype)(x.to(dtype))
    assert out.dtype == dtype
    torch.testing.assert_close(out.float(), expected, atol=0.05, rtol=0.05)


def test_form_follows_the_width():
    assert BlockCirculant(FOURIER_FROM, FOURIER_FROM, FOURIER_FROM // 4).form == 'fourier'
    assert BlockCirculant(FOURIER_FROM // 2, 8, 8).form == 'materialised'


def test_parameters_are_those_of_the_paper():
    layer = BlockCirculant(384, 384, 96)
    assert layer.weight.numel() == 4 * 4 * 96 and layer.bias.numel() == 384
    bound = 384**-0.5
    for parameter in (layer.weight, layer.bias):
        assert parameter.abs().max() <= bound and parameter.std() > 0.5 * bound
    assert isinstance(layer.weight, nn.Parameter)


@pytest.mark.parametrize(
    'args, message',
    [
        ((10, 8, 4), 'do not tile a matrix of 8 x 10'),
        ((8, 8, 0), 'side 0'),
        ((8, 8, 4, 'dense'), "form='dense': choose from fourier, materialised"),
    ],
)
def test_bad_arguments(args, message):
    with pytest.raises(ValueError, match=message):
        BlockCirculant(*args)
