"""The gate against the paper's recursion, unrolled by hand."""

import pytest
import torch

from mmvit_ext.models.layers import ResidualAttention


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
