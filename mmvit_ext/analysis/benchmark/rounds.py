"""Times calls that take turns, so that whatever disturbs one disturbs all."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

# reads the clock when the device has done all that it was told to
from torch.utils.benchmark import timer

# Calls that are quicker are repeated within a turn for as long, lest the clock decide.
TURN_SECONDS = 0.1


class Turn(NamedTuple):
    """What is done when it is a call's turn.

    Attributes:
        call: The call.
        repeats: How often it runs.
    """

    call: Callable[[], object]
    repeats: int


def fit_turn(call: Callable[[], object], clock: Callable[[], float] = timer) -> Turn:
    """Fits the length of a call's turn.

    Args:
        call: The call, warm: it ran before.
        clock: Tells the time in seconds.
    """
    start = clock()
    call()
    seconds = clock() - start
    return Turn(call, max(1, round(TURN_SECONDS / max(seconds, 1e-6))))


def take_turns(
    turns: Mapping[str, Turn], rounds: int, clock: Callable[[], float] = timer
) -> dict[str, list[float]]:
    """Times calls, one turn each a round.

    Args:
        turns: Warm calls by name.
        rounds: How often each has its turn.
        clock: Tells the time in seconds.

    Returns:
        Seconds of one call, by name, one number a round.
    """
    seconds = {name: [] for name in turns}
    for _ in range(rounds):
        for name, (call, repeats) in turns.items():
            start = clock()
            for _ in range(repeats):
                call()
            seconds[name].append((clock() - start) / repeats)
    return seconds
