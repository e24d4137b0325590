"""Line plot of top-1 accuracy over the share by which images are moved or shrunk."""

from collections.abc import Sequence
from pathlib import Path

from .robustness import KINDS, Robustness

TITLES = {
    'horizontal': 'horizontal translation',
    'vertical': 'vertical translation',
    'shrink': 'shrinking',
}
# Blue and vermilion of Okabe and Ito's palette: told apart by the colour-blind, and by the marker
# and the dashes where there is no colour.
STYLES = (
    {'color': '#0072B2', 'marker': 'o', 'linestyle': '-'},
    {'color': '#D55E00', 'marker': 's', 'linestyle': '--'},
)


def plot(results: Sequence[Robustness], path: str | Path) -> None:
    """Draws one panel a kind of change, with a line for each model, which starts at share 0.

    Args:
        results: One model or two.
        path: The picture to write; its suffix chooses the format.
    """
    # matplotlib is slow to import; a Figure of one's own needs no display and no global state
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout='constrained')
    panels = figure.subplots(1, len(KINDS), sharey=True)
    for kind, axes in zip(KINDS, panels):
        for result, style in zip(results, STYLES):
            shares = [share for found, share in result.top1 if found == kind]
            values = [result.untouched, *(result.top1[kind, share] for share in shares)]
            axes.plot([0, *(100 * share for share in shares)], values, label=result.name, **style)
        axes.set(title=TITLES[kind], xlabel='share of the side (%)')
        axes.grid(alpha=0.3)
    panels[0].set_ylabel('top-1 accuracy (%)')
    panels[0].set_ylim(bottom=0)
    panels[-1].legend()
    figure.savefig(path, dpi=150)
