"""A run with made-up figures: three models, one of which does not fit, in two cases and a curve."""

import pytest

from mmvit_ext.analysis.benchmark import Case, Result, Row, Run
from mmvit_ext.analysis.benchmark.memory import MIB, Memory


def made_up(case):
    """Results whose second model takes twice the time and half the memory."""
    rows = [
        Row('reference:A', 28_000_000, 4_500_000_000, 4, [0.5, 0.6], Memory(900 * MIB, 80 * MIB)),
        Row('mmvit_ext:A:arch=tiny', 27_500_000, None, 4, [1.0, 1.2], Memory(860 * MIB, 40 * MIB)),
        Row('timm:b', 5_000_000, 1_000_000_000, reason='ValueError: 7 | 8'),
    ]
    return Result(case, 8_000_000_000, [0.2, 0.2], rows)


@pytest.fixture
def run():
    """Measured are two cases by themselves, and three sizes that make a curve."""
    cases = [Case((4, 3, 224, 224)), Case((2, 3, 224, 224), 'train')]
    cases += [Case((1, 3, side, side)) for side in (64, 256, 128)]
    machine = {'CPU': 'Some CPU, 2 cores', 'torch': '2.14.1'}
    settings = {'device': 'cpu', 'threads': 1}
    return Run(machine, settings, [[made_up(case) for case in cases]], 'python tool.py')
