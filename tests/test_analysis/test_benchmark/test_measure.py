"""Measuring groups of models, here made up and without the process for their memory."""

import importlib

import pytest
import torch
import torch.nn as nn

from mmvit_ext.analysis.benchmark import Case, Settings, measure
from mmvit_ext.analysis.benchmark.backbone import Backbone
from mmvit_ext.analysis.benchmark.memory import Memory
from mmvit_ext.analysis.benchmark.rounds import Turn
from mmvit_ext.errors import UsageError

# the name in the package is the function
module = importlib.import_module('mmvit_ext.analysis.benchmark.measure')
CASES = [Case((1, 3, 8, 8)), Case((2, 3, 4, 4), 'train')]


class Conv(nn.Module):
    """A convolution that takes maps of 8 pixels and more, if told so."""

    def __init__(self, least):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 1, bias=False)
        self.least = least

    def forward(self, x):
        if x.shape[2] < self.least:
            raise ValueError(f'{x.shape[2]} pixels are too few')
        return self.conv(x)


@pytest.fixture
def made_up(monkeypatch):
    """Models of the names a:1 and b:8, small memory figures, and a matrix product of one."""
    monkeypatch.setattr(module, 'build', lambda spec: Backbone(Conv(int(spec.name))))
    monkeypatch.setattr(module, 'memory_of', lambda *_: (Memory(2, 1), None))
    monkeypatch.setattr(module, 'product', lambda *_: (Turn(lambda: None, 1), 1))
    monkeypatch.setattr(module, 'describe', lambda device, packages: {'packages': packages})


def test_every_model_in_every_case(made_up):
    lines = []
    settings = Settings(rounds=3)
    run = measure([['a:1', 'b:1'], ['c:1']], CASES, settings, lines.append)
    assert [len(group) for group in run.groups] == [2, 2] and len(lines) == 4
    assert run.settings == {'device': 'cpu', 'threads': 1, 'rounds': 3, 'compiled': False}
    assert run.machine == {'packages': {'mmvit_ext', 'a', 'b', 'c'}}
    for group in run.groups:
        for result, case in zip(group, CASES, strict=True):
            assert result.case == case and len(result.product_seconds) == 3
            for row in result.rows:
                assert len(row.seconds) == 3 and min(row.seconds) > 0
                assert (row.maps, row.parameters, row.reason) == (1, 6, None)
                assert row.multiply_adds == 6 * case.pixels


def test_model_that_cannot_run_a_size_is_there_with_the_reason(made_up):
    run = measure([['a:1', 'b:8']], CASES, Settings(rounds=2), lambda _: None)
    large, small = run.groups[0]
    assert [len(row.seconds) for row in large.rows] == [2, 2]
    fits, absent = small.rows
    assert len(fits.seconds) == 2 and absent.seconds == []
    assert absent.reason == 'ValueError: 4 pixels are too few'
    assert absent.maps is None and absent.multiply_adds is None


def test_model_whose_process_failed_is_not_timed(made_up, monkeypatch):
    failures = {'a:1': (Memory(2, 1), None), 'b:1': (None, 'process ended by SIGKILL')}
    monkeypatch.setattr(module, 'memory_of', lambda model, *_: failures[model])
    run = measure([['a:1', 'b:1']], CASES[:1], Settings(rounds=2), lambda _: None)
    fits, absent = run.groups[0][0].rows
    assert len(fits.seconds) == 2 and fits.memory == Memory(2, 1)
    assert absent.seconds == [] and absent.reason == 'process ended by SIGKILL'


def test_model_given_twice_is_told(made_up):
    with pytest.raises(UsageError, match='--models=a:1: given twice'):
        measure([['a:1', 'b:1', 'a:1']], CASES, Settings(), lambda _: None)


def test_all_models_are_built_before_one_is_measured(made_up, monkeypatch):
    def build(spec):
        if spec.name == '2':
            raise UsageError('no such model')
        return Backbone(Conv(1))

    monkeypatch.setattr(module, 'build', build)
    monkeypatch.setattr(module, 'memory_of', lambda *_: pytest.fail('too early'))
    with pytest.raises(UsageError, match='no such model'):
        measure([['a:1'], ['b:2']], CASES, Settings(), lambda _: None)


def test_machine():
    from mmvit_ext.analysis.benchmark.machine import describe

    facts = describe(torch.device('cpu'), ['mmvit_ext', 'timm'])
    assert facts['torch'] == torch.__version__ and facts['timm'] and facts['mmvit_ext']
    assert 'cores' in facts['CPU'] and 'GPU' not in facts
