"""The machine's rate of matrix products, which bounds what a network can reach on it."""

from collections.abc import Callable

import torch

from .rounds import Turn, fit_turn

# Side of a product that is large for a CPU or a GPU.
SIDES = {'cpu': 2048, 'cuda': 8192}
# Where to begin: some CPUs take minutes for a large product of half numbers.
SMALLEST = 256


def product(device: torch.device, dtype: str) -> tuple[Turn, int]:
    """A matrix product that is large for the device, or takes a whole turn.

    Args:
        device: Where it runs, a CPU or a GPU.
        dtype: Kind of its numbers, by torch's name.

    Returns:
        The turn of a call that computes it once, and its multiply-adds.
    """
    side = SMALLEST
    turn = _turn(side, device, dtype)
    while side < SIDES[device.type] and turn.repeats > 1:
        side *= 2
        turn = _turn(side, device, dtype)
    return turn, side**3


def _turn(side: int, device: torch.device, dtype: str) -> Turn:
    call = _product(side, device, dtype)
    call()
    return fit_turn(call)


def _product(side: int, device: torch.device, dtype: str) -> Callable[[], object]:
    kind = getattr(torch, dtype)
    a, b, out = (torch.rand(side, side, device=device, dtype=kind) for _ in range(3))
    return lambda: torch.mm(a, b, out=out)
