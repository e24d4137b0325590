"""One data set of a config: built as training builds it, then looked through."""

import contextlib
import io
from dataclasses import dataclass, field
from typing import Any

from mmengine.config import ConfigDict
from mmengine.registry import DATASETS

from mmvit_ext.errors import UsageError

from ..data_root import FETCHED
from .images import ImageCheck, check_images
from .labels import LabelCheck, count_boxes, count_classes, count_pixels

# arguments that leave out a part of the data, which is to be looked at, too
PARTIAL = ('filter_cfg', 'indices')
SHOWN = 5


@dataclass
class DataReport:
    """What one data set holds.

    Attributes:
        fields: Where the config names it.
        classes: Names of its classes, if it has any.
        notes: Lines that are no reason to worry.
        faults: Lines about what is wrong.
        labels: How often each class occurs; None where there are no labels.
        built: Whether its files could be read at all.
    """

    fields: list[str]
    classes: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    labels: LabelCheck | None = None
    built: bool = False


def report_on(fields: list[str], cfg: ConfigDict, decode: bool) -> DataReport:
    """Looks through a data set.

    Args:
        fields: Where the config names it.
        cfg: Its config; the default scope is that of its package.
        decode: Decode every image.

    Returns:
        The report.
    """
    report = DataReport(fields)
    try:
        dataset = _build(cfg)
        infos = [dataset.get_data_info(i) for i in range(len(dataset))]
    except UsageError as error:
        report.faults.append(str(error))
        return report
    # whatever a package says about its files
    except Exception as error:
        report.faults.append(f'cannot be read: {type(error).__name__}: {error}')
        return report
    report.built = True
    report.classes = tuple(dataset.metainfo.get('classes') or ())
    if infos:
        _look_at_images(report, infos, decode)
        _look_at_labels(report, infos, dataset)
    else:
        report.faults.append('no image is listed')
    return report


def _build(cfg: ConfigDict) -> Any:
    wanted = {key: value for key, value in cfg.items() if key not in PARTIAL}
    kind = str(cfg.type).rsplit('.', 1)[-1]
    if kind == 'CocoDataset':
        # counts what mmdet's leaves out in silence
        wanted['type'] = 'mmvit_ext.CocoDataset'
    if kind.endswith(FETCHED):
        wanted['download'] = False
    # without filters an empty training set is found here
    with contextlib.redirect_stdout(io.StringIO()):
        return DATASETS.build(wanted)


def _look_at_images(report: DataReport, infos: list[dict], decode: bool) -> None:
    if 'img_path' not in infos[0]:
        report.notes.append(f'images: {len(infos)}, inside the files of the data set')
        return
    result = check_images(infos, decode)
    found = result.listed - len(result.missing)
    report.notes.append(f'images: {result.listed} listed, {found} found')
    report.faults.extend(_image_faults(result))


def _image_faults(result: ImageCheck) -> list[str]:
    kinds = {
        'missing': result.missing,
        'unreadable or cut off': result.broken,
        'of another size than the annotations say': result.resized,
    }
    return [f'{len(p)} images {kind}: {first(p)}' for kind, p in kinds.items() if p]


def _look_at_labels(report: DataReport, infos: list[dict], dataset: Any) -> None:
    counts = getattr(dataset, 'box_counts', None)
    if 'instances' in infos[0]:
        report.labels = count_boxes(infos)
    elif infos[0].get('seg_map_path'):
        ignored = getattr(dataset, 'ignore_index', 255)
        report.labels = count_pixels(infos, len(report.classes), ignored)
    elif 'gt_label' in infos[0]:
        report.labels = count_classes(infos, len(report.classes))
    if counts:
        from mmvit_ext.datasets.coco import describe_boxes

        report.notes.append(f'annotations: {describe_boxes(counts)}')
    wrong = report.labels.faults if report.labels else []
    if wrong:
        report.faults.append(f'{len(wrong)} images with wrong labels: {first(wrong)}')


def first(lines: list[str]) -> str:
    """The first few of a list, and how many more there are."""
    more = f' and {len(lines) - SHOWN} more' if len(lines) > SHOWN else ''
    return ', '.join(lines[:SHOWN]) + more
