"""Pictures of a benchmark: bars of ratios, and growth of time and memory with the image."""

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from .figures import figures_of
from .memory import MIB
from .record import Result, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of Okabe and Ito's palette, which the colour-blind can tell apart.
TIME, MEMORY = '#0072B2', '#E69F00'
LINES = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000')
MARKERS = 'osv^Dx+'
# sizes of an image from which on they make a curve
CURVE_FROM = 3


def picture_names(run: Run, stem: str) -> list[str]:
    """File names of the pictures that a run gives: bars, growth, both or none.

    Args:
        run: What was measured.
        stem: What the names begin with.
    """
    names = []
    if any(singles(group) for group in run.groups):
        names.append(f'{stem}-ratios.png')
    if any(curves(group) for group in run.groups):
        names.append(f'{stem}-growth.png')
    return names


def draw(run: Run, folder: Path, stem: str) -> None:
    """Draws the pictures that :func:`picture_names` names.

    Args:
        run: What was measured.
        folder: Where to write them.
        stem: What the names begin with.
    """
    for name in picture_names(run, stem):
        figure = _ratios(run) if name.endswith('-ratios.png') else _growth(run)
        figure.savefig(folder / name, dpi=120)


def curves(group: Sequence[Result]) -> list[list[Result]]:
    """Results that differ in the size of the image alone, by size, where there are enough."""
    alike = {}
    for result in group:
        key = (result.case.shape[0], result.case.mode, result.case.dtype)
        alike.setdefault(key, {})[result.case.pixels] = result
    found = [[sizes[pixels] for pixels in sorted(sizes)] for sizes in alike.values()]
    return [curve for curve in found if len(curve) >= CURVE_FROM]


def singles(group: Sequence[Result]) -> list[Result]:
    """Results that are part of no curve."""
    curved = [result for curve in curves(group) for result in curve]
    return [result for result in group if result not in curved]


def _ratios(run: Run) -> 'Figure':
    """A panel a group and case: time and memory of each model over those of the first."""
    rows = [results for group in run.groups if (results := singles(group))]
    heights = [1.4 + 0.5 * len(results[0].rows) for results in rows]
    # the first column has the models' names beside it
    panels = _panels(heights, max(map(len, rows)), width=2.5, beside=3)
    for axes_row, results in zip(panels, rows):
        for axes, result in zip(axes_row, results):
            _bars(axes, result)
        axes_row[0].set_yticklabels([_short(row.model) for row in results[0].rows])
    figure = panels[0][0].figure
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc='outside upper left', ncols=2)
    return figure


def _bars(axes: 'Axes', result: Result) -> None:
    figures = figures_of(result)
    times = [each.ratio for each in figures]
    memories = [each.memory_ratio for each in figures]
    for values, shift, color, label in (
        (times, -0.2, TIME, 'time'),
        (memories, 0.2, MEMORY, 'memory'),
    ):
        places = [i + shift for i in range(len(values))]
        bars = axes.barh(places, [value or 0 for value in values], 0.38, color=color, label=label)
        axes.bar_label(bars, [f'{v:.2f}' if v else 'n/a' for v in values], padding=2)
    axes.axvline(1, color='black', linewidth=0.8)
    axes.set_yticks(range(len(times)), [''] * len(times))
    axes.invert_yaxis()
    # room for the figures behind the bars
    axes.set_xlim(0, 1.3 * max(1, *(value or 0 for value in times + memories)))
    axes.set_axis_on()
    title = result.case.title().replace(', ', '\n', 1)
    axes.set(title=title, xlabel='ratio to the first')


def _growth(run: Run) -> 'Figure':
    """Two panels a curve, time and memory, with a line for each model."""
    found = [curve for group in run.groups for curve in curves(group)]
    panels = _panels([4] * len(found), 2, width=5)
    for (time_axes, memory_axes), curve in zip(panels, found):
        for model, (pixels, seconds, memory), style in zip(
            [row.model for row in curve[0].rows], _lines(curve), _styles()
        ):
            time_axes.plot(pixels, seconds, label=_short(model), **style)
            memory_axes.plot(pixels, memory, **style)
        case = curve[0].case
        title = f'{case.shape[0]} x 3 x pixels, {case.mode}, {case.dtype}'
        sizes = {result.case.pixels: 'x'.join(map(str, result.case.shape[2:])) for result in curve}
        for axes, label in ((time_axes, 'time, s'), (memory_axes, 'memory, MiB')):
            axes.set_axis_on()
            axes.set(xscale='log', yscale='log', xlabel='pixels', ylabel=label, title=title)
            axes.set_xticks(list(sizes), sizes.values(), rotation=30)
            axes.xaxis.minorticks_off()
            axes.grid(alpha=0.3, which='both')
        time_axes.legend(fontsize='small')
    return panels[0][0].figure


def _lines(curve: Sequence[Result]) -> Iterator[tuple[list[int], list[float], list[float]]]:
    """Pixels, seconds and MiB of each model; gaps, NaN, where there is no figure."""
    pixels = [result.case.pixels for result in curve]
    drawn = [figures_of(result) for result in curve]
    for i in range(len(curve[0].rows)):
        memories = [result.rows[i].memory for result in curve]
        yield (
            pixels,
            [figures[i].seconds or float('nan') for figures in drawn],
            [
                memory.growth / MIB if memory and memory.growth else float('nan')
                for memory in memories
            ],
        )


def _styles() -> Iterator[dict[str, str]]:
    """Colours and markers without end."""
    for color, marker in cycle(zip(LINES, MARKERS)):
        yield {'color': color, 'marker': marker}


def _panels(
    heights: Sequence[float], columns: int, width: float, beside: float = 0
) -> list[list['Axes']]:
    """Panels that stay invisible until something is drawn in them.

    Args:
        heights: Of each row, in inches.
        columns: Panels in a row.
        width: Of a panel, in inches.
        beside: Room at the left, in inches.
    """
    # matplotlib is slow to import; a Figure of one's own needs no display and no global state
    from matplotlib.figure import Figure

    figure = Figure(figsize=(beside + width * columns, sum(heights)), layout='constrained')
    panels = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights).tolist()
    for axes in (axes for row in panels for axes in row):
        axes.set_axis_off()
    return panels


def _short(model: str) -> str:
    """A model's name on two lines."""
    return model.replace(':', '\n', 2).replace('\n', ':', 1)
