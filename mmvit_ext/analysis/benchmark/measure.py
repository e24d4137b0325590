"""Measures groups of models: memory each by itself, then time in turns."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import torch

from mmvit_ext.errors import UsageError

from ..complexity import count
from .attempt import attempt
from .backbone import Backbone
from .case import Case
from .machine import describe
from .memory import memory_of
from .product import product
from .record import Result, Row, Run
from .rounds import Turn, fit_turn, take_turns
from .sources import build
from .spec import parse_spec

PRODUCT = 'matrix product'


@dataclasses.dataclass(frozen=True)
class Settings:
    """How all models of a run are measured.

    Attributes:
        device: Where they run, such as 'cpu' or 'cuda:0'.
        threads: Threads of the CPU.
        rounds: How often each model has its turn.
        compiled: Whether torch compiles them.
    """

    device: str = 'cpu'
    threads: int = 1
    rounds: int = 10
    compiled: bool = False


def measure(
    groups: Sequence[Sequence[str]],
    cases: Sequence[Case],
    settings: Settings,
    tell: Callable[[str], None],
) -> Run:
    """Measures groups of models; those of a group are compared with its first.

    Threads and the precision of torch's convolutions are set for the whole process.

    Args:
        groups: Names of models, see :func:`parse_spec`.
        cases: How each of them runs.
        settings: Of the run.
        tell: Is given a line for each step of the work.

    Returns:
        What was found. A model that cannot run in a case is there with the reason.

    Raises:
        UsageError: If a model is unknown, cannot be built, or stands in a group twice.
    """
    torch.set_num_threads(settings.threads)
    # float32 is to mean float32 in convolutions, too, as it does in torch's matrix products
    torch.backends.cudnn.allow_tf32 = False
    # all of them before the first is measured, as that takes long
    built = [_build_group(models) for models in groups]
    results = [_measure_group(backbones, cases, settings, tell) for backbones in built]
    packages = {'mmvit_ext', *(parse_spec(model).source for group in groups for model in group)}
    machine = describe(torch.device(settings.device), packages - {'reference'})
    return Run(machine, dataclasses.asdict(settings), results)


def _build_group(models: Sequence[str]) -> dict[str, Backbone]:
    for model in models:
        if models.count(model) > 1:
            raise UsageError(f'--models={model}: given twice; give each model once a group')
    return {model: build(parse_spec(model)) for model in models}


def _measure_group(
    backbones: Mapping[str, Backbone],
    cases: Sequence[Case],
    settings: Settings,
    tell: Callable[[str], None],
) -> list[Result]:
    sizes = {case.shape[2:] for case in cases}
    works = {size: {m: _multiply_adds(b, size) for m, b in backbones.items()} for size in sizes}
    for backbone in backbones.values():
        backbone.to(settings.device)
    results = []
    for case in cases:
        tell(f'{case.title()}: {", ".join(backbones)}')
        results.append(_measure_case(backbones, works[case.shape[2:]], case, settings))
    for backbone in backbones.values():
        backbone.to('cpu')
    return results


def _multiply_adds(backbone: Backbone, size: tuple[int, int]) -> int | None:
    """Of one image; None where a model cannot be counted."""
    counted, _ = attempt(lambda: count(backbone, size))
    return counted and counted.multiply_adds


def _measure_case(
    backbones: Mapping[str, Backbone],
    works: Mapping[str, int | None],
    case: Case,
    settings: Settings,
) -> Result:
    if settings.compiled:
        # what was compiled for other sizes counts against a limit
        torch.compiler.reset()
    rows, turns = [], {}
    for model, backbone in backbones.items():
        row = Row(model, sum(p.numel() for p in backbone.parameters()), works[model])
        rows.append(row)
        turn = _start(backbone, row, case, settings)
        if turn is not None:
            turns[model] = turn
    turns[PRODUCT], multiply_adds = product(torch.device(settings.device), case.dtype)
    seconds = take_turns(turns, settings.rounds)
    for row in rows:
        row.seconds = seconds.get(row.model, [])
    return Result(case, multiply_adds, seconds[PRODUCT], rows)


def _start(backbone: Backbone, row: Row, case: Case, settings: Settings) -> Turn | None:
    """Measures memory and warms up, noting both in the row; no turn for a model that cannot run."""
    # a process of its own shows whether the model can run so, even where the system ends it
    row.memory, row.reason = memory_of(
        row.model, case, settings.device, settings.threads, settings.compiled
    )
    if row.reason is None:
        warm, row.reason = attempt(lambda: _warm_up(backbone, case, settings))
        row.maps, turn = warm or (None, None)
        return turn
    return None


def _warm_up(backbone: Backbone, case: Case, settings: Settings) -> tuple[int, Turn]:
    """Runs a model for the first time: the number of its outputs, and its turn from now on."""
    model = torch.compile(backbone, dynamic=False) if settings.compiled else backbone
    step = case.step(model, torch.device(settings.device))
    return step(), fit_turn(step)
