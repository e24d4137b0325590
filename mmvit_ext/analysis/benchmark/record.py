"""What was measured: runs of groups of models in several cases."""

import dataclasses
from typing import Any

from .case import Case
from .memory import Memory


@dataclasses.dataclass
class Row:
    """One model in one case.

    Attributes:
        model: Its name, see :func:`parse_spec`.
        parameters: Numbers in all its parameters.
        multiply_adds: Of a forward pass for one image; None where they cannot be counted.
        maps: Outputs that it gave; None where it did not run.
        seconds: Of one step, a number a round; none where it did not run.
        memory: Peak memory; None where it did not run.
        reason: Why it did not run.
    """

    model: str
    parameters: int
    multiply_adds: int | None = None
    maps: int | None = None
    seconds: list[float] = dataclasses.field(default_factory=list)
    memory: Memory | None = None
    reason: str | None = None


@dataclasses.dataclass
class Result:
    """All models of a group in one case; the first is what the others are compared with.

    Attributes:
        case: How they ran.
        product_multiply_adds: Of the large matrix product that took turns with them.
        product_seconds: Of that product, a number a round.
        rows: The models.
    """

    case: Case
    product_multiply_adds: int
    product_seconds: list[float]
    rows: list[Row]


@dataclasses.dataclass
class Run:
    """All that was measured at once.

    Attributes:
        machine: Facts about it, by name.
        settings: The settings of the run, by name.
        groups: Of each group of models, the results by case.
        command: The command line that asked for it.
    """

    machine: dict[str, str]
    settings: dict[str, Any]
    groups: list[list[Result]]
    command: str = ''
