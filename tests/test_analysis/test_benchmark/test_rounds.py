"""Calls take turns, and are timed by the clock; the clock here is made up."""

import pytest

from mmvit_ext.analysis.benchmark.rounds import TURN_SECONDS, Turn, fit_turn, take_turns


class Clock:
    """A clock that only calls move, and their order."""

    def __init__(self):
        self.now = 0.0
        self.calls = []

    def __call__(self):
        return self.now

    def call(self, name, seconds):
        def run():
            self.calls.append(name)
            self.now += seconds() if callable(seconds) else seconds

        return run


def test_models_take_turns():
    clock = Clock()
    turns = {'a': Turn(clock.call('a', 1.0), 1), 'b': Turn(clock.call('b', 2.0), 2)}
    assert take_turns(turns, 3, clock) == {'a': [1.0] * 3, 'b': [2.0] * 3}
    assert clock.calls == ['a', 'b', 'b'] * 3


def test_each_round_has_its_own_time():
    clock = Clock()
    times = iter([1.0, 3.0, 2.0])
    turns = {'a': Turn(clock.call('a', lambda: next(times)), 1)}
    assert take_turns(turns, 3, clock) == {'a': [1.0, 3.0, 2.0]}


@pytest.mark.parametrize(
    ('seconds', 'repeats'), [(2 * TURN_SECONDS, 1), (TURN_SECONDS / 8, 8), (1e-9, 100_000)]
)
def test_quick_calls_are_repeated(seconds, repeats):
    clock = Clock()
    assert fit_turn(clock.call('a', seconds), clock).repeats == repeats
    assert clock.calls == ['a']
