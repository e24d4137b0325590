"""Top-1 accuracy of a classifier on translated and shrunken images, as ReViT's tables have it.

ReViT (arXiv 2402.11301) moves the test images horizontally and vertically, and shrinks them, by
15, 30, 45 and 60 % of their size on a black ground, and compares how many points models lose.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mmvit_ext.errors import UsageError

# How each kind of change is written in a pipeline, but for its share.
KINDS: dict[str, dict[str, str]] = {
    'horizontal': {'type': 'mmvit_ext.Translate', 'direction': 'horizontal'},
    'vertical': {'type': 'mmvit_ext.Translate', 'direction': 'vertical'},
    'shrink': {'type': 'mmvit_ext.Shrink'},
}


class Classifier(Protocol):
    """What is asked of a model; any classifier of mmpretrain has it."""

    def test_step(self, batch: Any) -> Sequence[Any]:
        """Samples of a batch, each with ``pred_label`` and ``gt_label``, tensors of one label."""


CAPTION = """\
Top-1 accuracy in percent on {images} test images: untouched, moved right and down, and shrunk by a
share of their sides, on black. "Lost" are the points against the untouched images.

"""

# From a transform's config, or None for untouched images, to the batches of the test set.
Batches = Callable[[dict[str, Any] | None], Iterable[Any]]


@dataclass(frozen=True)
class Robustness:
    """Accuracy of one model.

    Attributes:
        name: Name of the model.
        images: Number of test images.
        untouched: Top-1 accuracy on the images as they are, in percent.
        top1: Top-1 accuracy in percent, by kind of change and share of the side.
    """

    name: str
    images: int
    untouched: float
    top1: dict[tuple[str, float], float]

    def lost(self, kind: str, share: float) -> float:
        """Points of top-1 accuracy lost against the untouched images; negative if gained."""
        return self.untouched - self.top1[kind, share]


def top1(model: Classifier, batches: Iterable[Any]) -> tuple[float, int]:
    """Counts how many images a model puts first into their class.

    Args:
        model: The classifier.
        batches: What its ``test_step`` takes.

    Returns:
        The accuracy in percent, and the number of images.

    Raises:
        UsageError: If there is no image, or one has no label or several.
    """
    hits = [_is_hit(sample) for batch in batches for sample in model.test_step(batch)]
    if not hits:
        raise UsageError('no test images; give a test set that has some')
    return 100 * sum(hits) / len(hits), len(hits)


def _is_hit(sample: Any) -> bool:
    given, found = (getattr(sample, key, None) for key in ('gt_label', 'pred_label'))
    for key, label in (('gt_label', given), ('pred_label', found)):
        if label is None or label.numel() != 1:
            raise UsageError(
                f'{key}={label}: top-1 accuracy needs one label an image; give a test set and a '
                'model of a single label'
            )
    return given.item() == found.item()


def measure(name: str, model: Classifier, batches: Batches, shares: Sequence[float]) -> Robustness:
    """Classifies the test set untouched and under every change.

    Args:
        name: Name of the model.
        model: The classifier.
        batches: Gives the test set under a transform.
        shares: Shares of the side, between 0 and 1; positive ones, so to the right and down.

    Returns:
        The accuracies.

    Raises:
        UsageError: If there is no image, or one has no label or several.
    """
    untouched, images = top1(model, batches(None))
    found = {
        (kind, share): top1(model, batches({**transform, 'share': share}))[0]
        for kind, transform in KINDS.items()
        for share in shares
    }
    return Robustness(name, images, untouched, found)


def loses_less(first: Robustness, second: Robustness, kind: str, share: float) -> float:
    """How many points less the first model loses than the second, the paper's statement.

    Rounded to 4 decimals.
    """
    # floats that differ by nothing must not print as -0.00
    return round(second.lost(kind, share) - first.lost(kind, share), 4) + 0.0


def record(results: Sequence[Robustness]) -> dict[str, Any]:
    """The numbers of one model or two, ready for JSON, rounded to 4 decimals of a percent."""
    models = [
        {
            'name': result.name,
            'images': result.images,
            'untouched_top1': round(result.untouched, 4),
            'rows': [
                {
                    'kind': kind,
                    'share': share,
                    'top1': round(value, 4),
                    'lost': round(result.lost(kind, share), 4),
                }
                for (kind, share), value in result.top1.items()
            ],
        }
        for result in results
    ]
    return {'models': models, **_differences(results)}


def _differences(results: Sequence[Robustness]) -> dict[str, Any]:
    if len(results) == 1:
        return {}
    rows = [
        {'kind': kind, 'share': share, 'points': loses_less(*results, kind, share)}
        for kind, share in results[0].top1
    ]
    return {'first_loses_less_by': rows}


def page(results: Sequence[Robustness]) -> str:
    """The numbers of one model or two as a Markdown table with its caption."""
    head = ['kind', 'share']
    untouched = ['untouched', '0 %']
    for result in results:
        head += [f'{result.name}: top-1', 'lost']
        untouched += [f'{result.untouched:.2f}', '']
    if len(results) == 2:
        head.append('first loses less by')
        untouched.append('')
    rows = [untouched, *(_cells(results, kind, share) for kind, share in results[0].top1)]
    lines = [head, ['---'] * len(head), *rows]
    table = ''.join(f'| {" | ".join(cells)} |\n' for cells in lines)
    return CAPTION.format(images=results[0].images) + table


def _cells(results: Sequence[Robustness], kind: str, share: float) -> list[str]:
    cells = [kind, f'{100 * share:g} %']
    for result in results:
        cells += [f'{result.top1[kind, share]:.2f}', f'{result.lost(kind, share):.2f}']
    if len(results) == 2:
        cells.append(f'{loses_less(*results, kind, share):+.2f}')
    return cells
