"""The gate against the paper's recursion, unrolled by hand."""

import pytest
import torch

from mmvit_ext.models.layers import Gates, ResidualAttention


def test_three_layers_follow_the_recursion():
    gate = ResidualAttention(0.37)
    scores = [torch.randn(2, 3, 4, 4) for _ in range(3)]
    mixed = gate(scores[0])
    assert torch.equal(mixed, scores[0])
    for s in scores[1:]:
        mixed = gate(s, mixed)
    a = 0.37
    expected = a * scores[2] + (1 - a) * (a * scores[1] + (1 - a) * scores[0])
    torch.testing.assert_close(mixed, expected)


@pytest.mark.parametrize('bounded', [False, True])
def test_learnable_gate_starts_at_alpha_and_learns(bounded):
    gate = ResidualAttention(0.3, learnable=True, bounded=bounded)
    assert float(gate.gate().detach()) == pytest.approx(0.3, abs=1e-6)
    own, carried = torch.randn(2, 3), torch.randn(2, 3)
    gate(own, carried).sum().backward()
    slope = 0.3 * 0.7 if bounded else 1.0
    assert gate.alpha.grad.item() == pytest.approx((own - carried).sum().item() * slope, rel=1e-4)


@pytest.mark.parametrize('learnable', [False, True])
def test_mixing_in_place_gives_the_same(learnable):
    gate = ResidualAttention(0.3, learnable).double()
    own = torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    carried = torch.randn(2, 1, 4, 5, dtype=torch.float64, requires_grad=True)
    expected = gate(own, carried)
    leaves = [own, carried, *gate.parameters()]
    gradients = torch.autograd.grad(expected.square().sum(), leaves)
    mixed = gate.mix_(own * 1, carried)
    torch.testing.assert_close(mixed, expected)
    for a, b in zip(torch.autograd.grad(mixed.square().sum(), leaves), gradients, strict=True):
        torch.testing.assert_close(a, b)
    with torch.no_grad():
        scores = own.clone()
        assert gate.mix_(scores, carried).data_ptr() == scores.data_ptr()
    torch.testing.assert_close(scores, expected)
    assert gate.mix_(scores) is scores


def test_bounded_gate_stays_inside():
    gate = ResidualAttention(0.5, learnable=True, bounded=True)
    for value in (-15.0, 15.0):
        torch.nn.init.constant_(gate.alpha, value)
        assert 0 < gate.gate().item() < 1


def test_alpha_one_carries_nothing():
    own = torch.randn(2, 3)
    gate = ResidualAttention(1.0)
    assert not gate.carries and gate(own, torch.randn(2, 3)) is own
    assert ResidualAttention(1.0, learnable=True).carries


@pytest.mark.parametrize('alpha', [-0.1, 1.1])
def test_alpha_outside_is_refused(alpha):
    with pytest.raises(ValueError, match=f'alpha={alpha}'):
        ResidualAttention(alpha)


def test_bounded_gate_cannot_start_on_the_border():
    with pytest.raises(ValueError, match='bounded'):
        ResidualAttention(1.0, learnable=True, bounded=True)


def test_begins_plain():
    gate = ResidualAttention(0.4, learnable=True)
    gate.begin_plain()
    own = torch.randn(2, 3)
    assert torch.equal(gate(own, torch.randn(2, 3)), own)
    ResidualAttention(1.0).begin_plain()
    for stuck in (ResidualAttention(0.5), ResidualAttention(0.5, learnable=True, bounded=True)):
        with pytest.raises(ValueError, match='alpha=0.5 cannot begin.*alpha_mode'):
            stuck.begin_plain()


@pytest.mark.parametrize('device', ['cpu', 'meta'])
def test_prints_on_any_device(device, recwarn):
    with torch.device(device):
        text = str(ResidualAttention(0.3, learnable=True))
    assert 'learnable=True' in text and ('alpha=0.3' in text) == (device == 'cpu')
    assert not recwarn.list


@pytest.mark.parametrize(
    'mode, shared, own, carries',
    [('fixed', False, None, True), ('shared', True, None, True), ('block', None, True, True)],
)
def test_gates_of_a_network(mode, shared, own, carries):
    gates = Gates(0.5, mode)
    made = gates.shared(), gates.own()
    assert [gate and gate.learnable for gate in made] == [shared, own]
    assert gates.carries == carries and not Gates().carries
    with pytest.raises(ValueError, match="alpha_mode='layer': choose from fixed, shared, block"):
        Gates(0.5, 'layer')
