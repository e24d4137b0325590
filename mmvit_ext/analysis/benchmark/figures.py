"""Figures drawn from what was measured: medians, spreads, ratios and shares."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .record import Result, Row

# Forward passes that a case counts for: a backward pass has two products for each of the forward.
PASSES = {'forward': 1, 'train': 3}


@dataclass(frozen=True)
class Figures:
    """Figures of one model in one case; None where there is nothing to draw them from.

    Attributes:
        seconds: Median of a step.
        spread: Distance of the quartiles, as a share of the median.
        ratio: Time over that of the first model, median over the rounds.
        memory_ratio: Growth of the memory over that of the first model.
        product_share: Multiply-adds a second over those of a large matrix product, median over
            the rounds.
    """

    seconds: float | None = None
    spread: float | None = None
    ratio: float | None = None
    memory_ratio: float | None = None
    product_share: float | None = None


def figures_of(result: Result) -> list[Figures]:
    """The figures of each model of a result, in order."""
    return [_figures(result, row) for row in result.rows]


def _figures(result: Result, row: Row) -> Figures:
    first = result.rows[0]
    if not row.seconds:
        return Figures()
    low, median, high = np.percentile(row.seconds, [25, 50, 75]).tolist()
    return Figures(
        seconds=median,
        spread=(high - low) / median,
        ratio=median_ratio(row.seconds, first.seconds),
        memory_ratio=_memory_ratio(row, first),
        product_share=_product_share(result, row),
    )


def median_ratio(times: Sequence[float], others: Sequence[float]) -> float | None:
    """Median of the ratios round by round, so that what slows a whole round cancels out.

    Args:
        times: Seconds by round.
        others: Those to divide by, of the same rounds; none where there are none.
    """
    if not others:
        return None
    return statistics.median(time / other for time, other in zip(times, others, strict=True))


def _memory_ratio(row: Row, first: Row) -> float | None:
    if not (row.memory and first.memory and row.memory.growth and first.memory.growth):
        return None
    return row.memory.growth / first.memory.growth


def _product_share(result: Result, row: Row) -> float | None:
    ratio = median_ratio(result.product_seconds, row.seconds)
    if row.multiply_adds is None or not result.product_seconds:
        return None
    work = row.multiply_adds * result.case.shape[0] * PASSES[result.case.mode]
    return work / result.product_multiply_adds * ratio
