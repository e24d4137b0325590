"""How often each class occurs in a data set, and labels that are of no class."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from .images import image_size, progress

BACKGROUND = 255


@dataclass
class LabelCheck:
    """Labels of a data set.

    Attributes:
        unit: What is counted: ``'boxes'``, ``'pixels'`` or ``''`` where each image has one label.
        amount: How many of the unit there are of each label.
        images: How many images have each label.
        faults: What is wrong, with the names of files.
    """

    unit: str
    amount: Counter[int] = field(default_factory=Counter)
    images: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def count_boxes(infos: Sequence[dict]) -> LabelCheck:
    """Counts the boxes of mmdet's ``instances``, crowd regions left out."""
    result = LabelCheck('boxes')
    for info in infos:
        labels = [i['bbox_label'] for i in info['instances'] if not i.get('ignore_flag')]
        result.amount.update(labels)
        result.images.update(set(labels))
    return result


def count_classes(infos: Sequence[dict], classes: int) -> LabelCheck:
    """Counts the labels of mmpretrain's ``gt_label``, one or several for each image.

    Args:
        infos: What the data set says about each image.
        classes: Number of its classes; 0 where it names none.
    """
    result = LabelCheck('')
    for info in infos:
        labels = {int(label) for label in np.atleast_1d(info['gt_label'])}
        result.images.update(labels)
        wrong = sorted(label for label in labels if label < 0 or 0 < classes <= label)
        if wrong:
            where = info.get('img_path', 'an image')
            result.faults.append(f'{where} (label {wrong[0]} with {classes} classes)')
    return result


def count_pixels(infos: Sequence[dict], classes: int, ignored: int = BACKGROUND) -> LabelCheck:
    """Counts the values of mmseg's label maps, changed as its ``LoadAnnotations`` does.

    Args:
        infos: For each image ``img_path``, ``seg_map_path``, ``reduce_zero_label``, ``label_map``.
        classes: Number of classes.
        ignored: Value that is none of them on purpose.
    """
    result = LabelCheck('pixels')
    for info in progress(infos, 'label maps'):
        path = info['seg_map_path']
        try:
            counts = _pixels(info)
        # missing files, and what Pillow's plug-ins raise
        except Exception as error:
            result.faults.append(f'{path} ({type(error).__name__}: {error})')
            continue
        result.amount.update(counts)
        result.images.update(counts.keys())
        wrong = sorted(v for v in counts if v >= classes and v != ignored)
        if wrong:
            values = ', '.join(map(str, wrong[:5]))
            result.faults.append(f'{path} (values {values} with {classes} classes)')
    for counter in (result.amount, result.images):
        counter.pop(ignored, None)
    return result


def _pixels(info: dict) -> Counter[int]:
    """Labels and their pixels in one map.

    Raises:
        ValueError: If the map has colours, or not the size of its image.
    """
    with Image.open(info['seg_map_path']) as file:
        values = np.asarray(file)
    if values.ndim != 2:
        raise ValueError(f'{values.shape[2]} channels, where one with class numbers is wanted')
    size, _ = image_size(info['img_path'])
    if size is not None and size != values.shape[::-1]:
        raise ValueError(f'{values.shape[1]} x {values.shape[0]}, its image {size[0]} x {size[1]}')
    # mmseg reads eight bits
    counts = np.bincount(values.astype(np.uint8).ravel(), minlength=256)
    return Counter(_labels(counts, info))


def _labels(counts: np.ndarray, info: dict) -> dict[int, int]:
    """Pixels by label from pixels by value of the file."""
    labels: Counter[int] = Counter()
    renamed = info.get('label_map') or {}
    for value in np.flatnonzero(counts).tolist():
        label = value
        if info.get('reduce_zero_label'):
            label = BACKGROUND if value in (0, BACKGROUND) else value - 1
        labels[renamed.get(label, label)] += int(counts[value])
    return labels
