"""The page of a benchmark, in Markdown."""

import statistics
from collections.abc import Sequence

from .figures import Figures, figures_of
from .memory import MIB
from .record import Result, Row, Run

INTRODUCTION = """\
# Speed and memory

Backbones alone, with random weights and without stochastic depth. "forward" is eval mode without
gradients, "train" a forward and a backward pass in training mode; bfloat16 and float16 run under
autocast. "outputs" are the maps that a model gives: compare models that give as many.

- **ms**: median time of one step; models take turns, one each a round. **IQR**: distance of the
  quartiles, in percent of the median. **ratio**: to the first model of the table, the median over
  the rounds.
- **MiB**: what a model's first step adds to the memory of a process of its own, or of the GPU;
  **ratio**: to the first model; **peak**: all that the process held, or torch on the GPU.
- **G multiply-adds**: of a forward pass for one image, matrix products only; "?" where they cannot
  be counted. **of product**: multiply-adds a second, in percent of what a large matrix product
  reaches in the same rounds; a training step counts as three forward passes.
"""
HEAD = (
    '| model | outputs | M parameters | G multiply-adds | ms | IQR | ratio | MiB | ratio | peak '
    '| of product |\n' + '|---' * 11 + '|\n'
)


def page(runs: Sequence[Run], pictures: Sequence[Sequence[str]]) -> str:
    """Writes the page.

    Args:
        runs: What was measured.
        pictures: Of each run, the paths of its pictures.

    Returns:
        The page.
    """
    return '\n'.join([INTRODUCTION, *map(_run_section, runs, pictures)])


def _run_section(run: Run, pictures: Sequence[str]) -> str:
    """Machine, settings, tables and pictures of one run."""
    machine = ', '.join(f'{name} {fact}' for name, fact in run.machine.items())
    settings = ', '.join(f'{name} {value}' for name, value in run.settings.items())
    parts = [f'## {run.machine.get("GPU", run.machine["CPU"])}', f'{machine}.', f'{settings}.']
    if run.command:
        parts.append(f'```sh\n{run.command}\n```')
    for group in run.groups:
        parts.append(f'### `{group[0].rows[0].model}`')
        parts += map(_table, group)
    parts += [f'![{path}]({path})' for path in pictures]
    return '\n\n'.join(parts) + '\n'


def _table(result: Result) -> str:
    """The models of one case."""
    rate = 2e-9 * result.product_multiply_adds / statistics.median(result.product_seconds)
    title = f'**{result.case.title()}** (matrix product: {rate:.0f} GFLOP/s)\n\n'
    return title + HEAD + '\n'.join(map(_line, result.rows, figures_of(result)))


def _line(row: Row, figures: Figures) -> str:
    work = '?' if row.multiply_adds is None else f'{row.multiply_adds / 1e9:.2f}'
    cells = [f'`{row.model}`', _shown(row.maps, 'd'), f'{row.parameters / 1e6:.2f}', work]
    if row.reason is not None:
        reason = row.reason.replace('|', '\\|')
        return f'| {" | ".join(cells)} | n/a: {reason} |' + ' |' * 6
    memory = row.memory
    cells += [
        milliseconds(figures.seconds),
        f'{figures.spread:.0%}',
        _shown(figures.ratio, '.2f'),
        _shown(memory.growth and memory.growth / MIB, '.0f'),
        _shown(figures.memory_ratio, '.2f'),
        f'{memory.peak / MIB:.0f}',
        _shown(figures.product_share, '.0%'),
    ]
    return f'| {" | ".join(cells)} |'


def _shown(value: float | None, form: str) -> str:
    return 'n/a' if value is None else format(value, form)


def milliseconds(seconds: float) -> str:
    """A time in ms, with three digits or more."""
    ms = 1e3 * seconds
    return f'{ms:.{2 if ms < 10 else 1 if ms < 100 else 0}f}'
