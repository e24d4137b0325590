"""Networks whose scores stay in factors against the same networks with scores as a whole."""

import pytest
import torch

from mmvit_ext.models import AugViT, ReMViTv2, ReViT
from mmvit_ext.models.layers import ScoreFactors, ScoreGrid, factored_attention, score_form
from mmvit_ext.testing import randomise


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Attends to few queries at a time, as only large images need it."""
    way = factored_attention.attend_in_blocks
    monkeypatch.setattr(factored_attention, 'attend_in_blocks', lambda s, v: way(s, v, 3000))


def outputs_and_gradients(model, image):
    """The maps, and the gradients of all parameters and of the image."""
    image = image.clone().requires_grad_()
    maps = model(image)
    targets = [*(p for p in model.parameters()), image]
    loss = sum(m.square().mean() for m in maps)
    return maps, torch.autograd.grad(loss, targets)


def assert_same(found, expected, tolerance):
    """Largest difference of each tensor against its own size, or that of all gradients."""
    (maps, gradients), (expected_maps, expected_gradients) = found, expected
    for a, b in zip(maps, expected_maps, strict=True):
        assert (a - b).abs().max() <= tolerance * b.abs().max()
    # biases of keys have a gradient of zero, but for rounding
    floor = 1e-3 * max(g.abs().max() for g in expected_gradients)
    for a, b in zip(gradients, expected_gradients, strict=True):
        assert (a - b).abs().max() <= tolerance * max(b.abs().max(), floor)


def twins(kind, **settings):
    """The same random network with scores dense and in factors."""
    dense = randomise(kind(scores='dense', **settings))
    factored = kind(scores='factored', **settings).eval()
    factored.load_state_dict(dense.state_dict())
    return dense, factored


NANO = [
    (ReMViTv2, {}),
    (ReMViTv2, {'carry_rel_pos': False, 'alpha_mode': 'block'}),
    (ReMViTv2, {'window_size': 8, 'depths': (1, 2, 3, 2)}),
    (ReMViTv2, {'window_size': 8, 'depths': (2, 3, 3, 3), 'carry_rel_pos': False}),
    (ReMViTv2, {'alpha': 1.0, 'alpha_mode': 'fixed'}),
    (ReMViTv2, {'alpha_bounded': True, 'num_heads': 3}),
    (ReViT, {}),
    (ReViT, {'alpha_mode': 'block', 'with_cls_token': True}),
    (ReViT, {'alpha_mode': 'fixed', 'alpha': 0.3, 'depth': 6}),
]


@pytest.mark.parametrize('with_cp', [False, True])
@pytest.mark.parametrize('size', [(64, 64), (93, 70)])
@pytest.mark.parametrize('kind, settings', NANO)
def test_double_precision(kind, settings, size, with_cp):
    torch.manual_seed(0)
    dense, factored = (m.double() for m in twins(kind, arch='nano', **settings))
    image = torch.randn(2, 3, *size, dtype=torch.float64)
    expected = outputs_and_gradients(dense, image)
    factored.with_cp = with_cp
    assert_same(outputs_and_gradients(factored, image), expected, 1e-10)


ARCHS = [
    *(pytest.param(kind, 'tiny') for kind in (ReMViTv2, ReViT)),
    *(
        pytest.param(kind, arch, marks=pytest.mark.slow)
        for kind in (ReMViTv2, ReViT)
        for arch in ('small', 'base')
    ),
]


@pytest.mark.parametrize('kind, arch', ARCHS)
def test_single_precision(kind, arch):
    torch.manual_seed(0)
    dense, factored = twins(kind, arch=arch)
    image = torch.randn(1, 3, 96, 132)
    expected = outputs_and_gradients(dense, image)
    assert_same(outputs_and_gradients(factored, image), expected, 1e-4)


@pytest.mark.parametrize('kind', [ReMViTv2, ReViT])
def test_autocast_is_as_exact_as_with_scores(kind):
    torch.manual_seed(0)
    dense, factored = twins(kind, arch='nano')
    image = torch.randn(2, 3, 93, 70)
    exact = outputs_and_gradients(dense, image)
    errors = []
    for model in (dense, factored):
        with torch.autocast('cpu', torch.bfloat16):
            found = outputs_and_gradients(model, image)
        # all gradients as one long vector, and the maps as another
        flat = [torch.cat([x.float().flatten() for x in part]) for part in (*found, *exact)]
        errors.append([(a - b).norm() / b.norm() for a, b in zip(flat[:2], flat[2:])])
    for of_scores, of_factors in zip(*errors):
        assert of_factors <= 1.5 * of_scores


@pytest.mark.parametrize('kind, places', [(ReMViTv2, 6), (ReViT, 4)])
def test_auto_takes_factors_where_scores_are_large(kind, places, monkeypatch):
    def states(limit):
        monkeypatch.setattr(score_form, 'DENSE_BYTES', limit)
        found = []
        hooks = [
            module.register_forward_hook(lambda module, args, out: found.append(out[1]))
            for name, module in model.named_modules()
            if name.endswith('attn')
        ]
        maps = model(image)
        for hook in hooks:
            hook.remove()
        return maps, found

    model, image = randomise(kind(arch='nano')), torch.randn(1, 3, 64, 96)
    dense, scores = states(2**30)
    factored, factors = states(1)
    assert len(scores) == len(factors) == places
    # the last block of a pyramid hands nothing on
    assert {type(s) for s in scores if s is not None} == {ScoreGrid}
    assert {type(s) for s in factors if s is not None} == {ScoreFactors}
    for a, b in zip(dense, factored, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def test_a_pyramid_leaves_factors_where_its_maps_are_small(monkeypatch):
    torch.manual_seed(0)
    model, image = randomise(ReMViTv2('nano')), torch.randn(1, 3, 64, 96)
    with torch.no_grad():
        expected = model(image)
        monkeypatch.setattr(score_form, 'DENSE_BYTES', 4 * 3 * 8000)
        assert model._in_factors(model.patch_embed(image)) == [True] * 4 + [False] * 2
        maps = model(image)
    for a, b in zip(maps, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def test_scores_that_nobody_carries_stay_in_the_kernel():
    torch.manual_seed(0)
    dense, fused = randomise(AugViT('nano', scores='dense')), AugViT('nano')
    fused.load_state_dict(dense.state_dict())
    image = torch.randn(2, 3, 70, 93)
    seen = []
    for model in (dense, fused.eval()):
        model.blocks[0].attn.register_forward_hook(lambda module, args, out: seen.append(out[1]))
    expected = outputs_and_gradients(dense, image)
    assert_same(outputs_and_gradients(fused, image), expected, 1e-4)
    assert seen[0].scores.shape == (2, 3, 31, 31) and seen[1] is None


def test_dropout_of_weights_needs_scores():
    with pytest.raises(ValueError, match='attn_drop_rate=0.1.*dense'):
        ReViT('nano', scores='factored', attn_drop_rate=0.1)
    model = ReViT('nano', attn_drop_rate=0.5)
    image = torch.randn(1, 3, 32, 32)
    assert not torch.equal(model(image)[0], model(image)[0])


@pytest.mark.parametrize('kind', [ReMViTv2, ReViT])
def test_unknown_form_is_refused(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__}: scores='some': choose from"):
        kind('nano', scores='some')
