"""The matrix product that models are held against."""

import pytest
import torch

from mmvit_ext.analysis.benchmark import product as module
from mmvit_ext.analysis.benchmark.product import product
from mmvit_ext.analysis.benchmark.rounds import Turn


@pytest.mark.parametrize(('slow_from', 'side'), [(256, 256), (1024, 1024), (9999, 2048)])
def test_grows_until_it_takes_a_turn_or_is_large(monkeypatch, slow_from, side):
    sides = []

    def turn(side, device, dtype):
        sides.append(side)
        return Turn(side, 1 if side >= slow_from else 5)

    monkeypatch.setattr(module, '_turn', turn)
    assert product(torch.device('cpu'), 'float32')[1] == side**3
    assert sides == [s for s in (256, 512, 1024, 2048) if s <= side]


def test_computes_a_product():
    assert torch.is_tensor(module._product(8, torch.device('cpu'), 'bfloat16')())
