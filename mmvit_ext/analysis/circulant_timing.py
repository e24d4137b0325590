"""How long the two forms of a block-circulant product take, by width."""

import copy
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.benchmark import Timer

from mmvit_ext.models.layers import BlockCirculant
from mmvit_ext.models.layers.circulant import FORMS

ROUNDS = 7


class Timing(NamedTuple):
    """Median seconds of each form at one width.

    Attributes:
        dim: Channels.
        forward: Seconds of a forward pass in eval mode, by form.
        training: Seconds of a forward and backward pass, by form.
    """

    dim: int
    forward: dict[str, float]
    training: dict[str, float]


def time_forms(dim: int, tokens: int, paths: int, blocks: int, seconds: float) -> Timing:
    """Times ``paths`` block-circulant paths of an augmented shortcut, on one thread.

    Args:
        dim: Channels.
        tokens: Tokens of the input.
        paths: Paths, computed as one product.
        blocks: Circulant blocks a side.
        seconds: Least time spent on each median.
    """
    x = torch.randn(tokens, dim)
    forward, training = {}, {}
    for form in FORMS:
        layer = BlockCirculant(dim, paths * dim, dim // blocks, form).eval()
        forward[form] = partial(_forward, layer, x)
        training[form] = partial(_train, copy.deepcopy(layer).train(), x.clone().requires_grad_())
    return Timing(dim, _medians(forward, seconds), _medians(training, seconds))


def _forward(layer: BlockCirculant, x: Tensor) -> None:
    with torch.no_grad():
        layer(x)


def _train(layer: BlockCirculant, x: Tensor) -> None:
    layer(x).sum().backward()


def _medians(calls: dict[str, Callable[[], None]], seconds: float) -> dict[str, float]:
    """Median time of each call; they take turns, so that what disturbs one disturbs all."""
    times = {form: [] for form in calls}
    for _ in range(ROUNDS):
        for form, call in calls.items():
            timer = Timer('call()', globals={'call': call}, num_threads=1)
            times[form] += timer.blocked_autorange(min_run_time=seconds / ROUNDS).times
    return {form: statistics.median(found) for form, found in times.items()}


def table(timings: Iterable[Timing]) -> str:
    """The timings as a Markdown table, in ms, with the ratio of Fourier to materialised."""
    head = 'd | forward, materialised | Fourier | ratio | training, materialised | Fourier | ratio'
    lines = [f'| {head} |', '|' + '---|' * 7]
    for timing in timings:
        cells = [str(timing.dim)]
        for times in (timing.forward, timing.training):
            dense, fourier = times['materialised'], times['fourier']
            cells += [f'{1e3 * dense:.2f}', f'{1e3 * fourier:.2f}', f'{fourier / dense:.2f}']
        lines.append('| ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines)
