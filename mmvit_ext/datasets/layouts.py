"""Writers of digit pictures in the folder layouts of COCO, ADE20K and ImageNet.

Picture ``k`` of a split depends on the seed, the split, ``k`` and the size alone: a longer data
set starts with the pictures of a shorter one.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np

from .coco_categories import COCO_CATEGORIES
from .digits import DIGIT_CLASSES, SPLITS, load_pool
from .folders import (
    DigitSettings,
    Stamp,
    check_free,
    is_current,
    read_stamp,
    remove_files,
    write_stamp,
)
from .scenes import Instance, Scene, make_crop, make_scene

# One picture in twenty has a crowd and one has no digit: few, but present in any set of eight.
_KIND_PERIOD = 20
_CROWD_PLACE = 3
_EMPTY_PLACE = 7

# One digit in eight is stored as run lengths. Loaders that take only polygons ignore these, so
# there are few of them and no class depends on them.
_RLE_PERIOD = 8

_JPEG_QUALITY = 92
_ADE_FOLDERS = {'train': 'training', 'val': 'validation'}


def _image_rng(settings: DigitSettings, split: str, k: int) -> np.random.Generator:
    """Return the generator of picture ``k``, independent of every other picture."""
    return np.random.default_rng([settings.seed, SPLITS.index(split), k])


def _scene_kind(k: int, crowds: bool) -> str:
    """Return what picture ``k`` shows, see :func:`make_scene`."""
    place = k % _KIND_PERIOD
    if place == _EMPTY_PLACE:
        return 'empty'
    return 'crowd' if crowds and place == _CROWD_PLACE else 'digits'


def _draw(settings: DigitSettings, split: str, k: int) -> Scene:
    """Draw picture ``k`` of a split."""
    pool, rng = load_pool(split), _image_rng(settings, split, k)
    if settings.layout == 'imagenet':
        return make_crop(pool, rng, settings.size, label=k % len(DIGIT_CLASSES))
    kind = _scene_kind(k, crowds=settings.layout == 'coco')
    return make_scene(pool, rng, settings.size, kind)


def _write_image(path: Path, image: np.ndarray) -> None:
    """Encode a picture by the suffix of its path and write it."""
    _, data = cv2.imencode(path.suffix, image, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
    path.write_bytes(data.tobytes())


def _coco_image(split: str, k: int) -> str:
    return f'{split}2017/{k + 1:012d}.jpg'


def _coco_json(split: str) -> str:
    return f'annotations/instances_{split}2017.json'


def _ade_stem(split: str, k: int) -> str:
    return f'{_ADE_FOLDERS[split]}/ADE_{split}_{k + 1:08d}'


def _imagenet_image(split: str, k: int) -> str:
    return f'{split}/{DIGIT_CLASSES[k % len(DIGIT_CLASSES)]}/{split}_{k + 1:08d}.jpg'


def _pictures(settings: DigitSettings) -> Iterator[tuple[str, int]]:
    """Go through the split and number of all pictures."""
    return ((split, k) for split in SPLITS for k in range(settings.count(split)))


def layout_files(settings: DigitSettings) -> list[str]:
    """List the files of a data set, without the stamp.

    Args:
        settings: Settings of the data set.

    Returns:
        Paths relative to its folder.
    """
    if settings.layout == 'coco':
        images = [_coco_image(split, k) for split, k in _pictures(settings)]
        return images + [_coco_json(split) for split in SPLITS]
    if settings.layout == 'ade':
        stems = [_ade_stem(split, k) for split, k in _pictures(settings)]
        return [
            name for stem in stems for name in (f'images/{stem}.jpg', f'annotations/{stem}.png')
        ]
    return [_imagenet_image(split, k) for split, k in _pictures(settings)]


def mask_to_rle(mask: np.ndarray) -> dict:
    """Encode a mask as COCO's uncompressed run lengths.

    Args:
        mask: Bool array of shape (H, W).

    Returns:
        ``size`` as [H, W] and ``counts``, the lengths of alternate runs of background and object
        down the columns, starting with background.
    """
    flat = np.concatenate([[False], mask.ravel(order='F')])
    starts = np.flatnonzero(flat[1:] != flat[:-1])
    counts = np.diff(np.concatenate([[0], starts, [mask.size]]))
    return {'size': list(mask.shape), 'counts': counts.tolist()}


def mask_to_polygons(mask: np.ndarray) -> list[list[float]]:
    """Outline a mask along its pixel edges, so that COCO's rasteriser gives the same mask back.

    A COCO polygon cannot have a hole, but an object may have several polygons: a mask with a hole
    is cut across the hole into parts without one.

    Args:
        mask: Bool array of shape (H, W).

    Returns:
        One flat [x0, y0, x1, y1, ...] list for each part; the parts do not overlap.
    """
    # Contours run through pixel centres. With every pixel doubled, the first and second half of a
    # pixel tell its left or top edge from its right or bottom one.
    doubled = np.repeat(np.repeat(mask.astype(np.uint8), 2, axis=0), 2, axis=1)
    contours, hierarchy = cv2.findContours(doubled, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    for contour, (_, _, _, parent) in zip(contours, [] if hierarchy is None else hierarchy[0]):
        if parent >= 0:
            # A hole's contour runs on the object around it, so its middle row is in the hole.
            return _cut_and_outline(mask, int(contour[:, 0, 1].min() + contour[:, 0, 1].max()) // 4)
    return [_pixel_edges(contour) for contour in contours]


def _cut_and_outline(mask: np.ndarray, row: int) -> list[list[float]]:
    """Outline the part of a mask above ``row`` and the part from it on."""
    above, below = mask.copy(), mask.copy()
    above[row:] = False
    below[:row] = False
    return mask_to_polygons(above) + mask_to_polygons(below)


def _pixel_edges(contour: np.ndarray) -> list[float]:
    """Turn a contour of a doubled mask, shape (N, 1, 2), into a flat polygon on pixel edges."""
    corners = (contour[:, 0] + 1) // 2
    repeated = (corners == np.roll(corners, 1, axis=0)).all(axis=1)
    # Floats, because loaders scale the coordinates in place.
    return corners[~repeated].astype(float).ravel().tolist()


def _coco_annotation(instance: Instance, annotation_id: int, image_id: int) -> dict:
    """Describe one object; crowds and a few digits as run lengths, the others as polygons."""
    as_rle = instance.crowd or annotation_id % _RLE_PERIOD == 0
    return {
        'id': annotation_id,
        'image_id': image_id,
        'category_id': instance.label + 1,
        'bbox': [float(value) for value in instance.bbox],
        'area': float(instance.mask.sum()),
        'segmentation': (mask_to_rle if as_rle else mask_to_polygons)(instance.mask),
        'iscrowd': int(instance.crowd),
    }


def _coco_categories(coco_names: bool) -> list[dict]:
    """List the categories; either way, ids 1 to 10 stand for the digits 0 to 9."""
    rows = (
        COCO_CATEGORIES
        if coco_names
        else [(label + 1, name, 'digit') for label, name in enumerate(DIGIT_CLASSES)]
    )
    return [{'id': key, 'name': name, 'supercategory': group} for key, name, group in rows]


def _coco_header(coco_names: bool) -> dict:
    """Return the parts of an annotation file that do not depend on the pictures."""
    return {
        'info': {
            'description': 'Handwritten digits on textured backgrounds',
            'url': 'https://archive.ics.uci.edu/dataset/80',
            'version': '1.0',
            'year': 1998,
            'contributor': 'E. Alpaydin and C. Kaynak',
            'date_created': '1998/07/01',
        },
        'licenses': [
            {
                'id': 1,
                'name': 'Creative Commons Attribution 4.0',
                'url': 'https://creativecommons.org/licenses/by/4.0/',
            }
        ],
        'categories': _coco_categories(coco_names),
    }


def write_coco(out: Path, settings: DigitSettings) -> None:
    """Write ``train2017/``, ``val2017/`` and ``annotations/instances_*2017.json``.

    Args:
        out: Existing folder of the data set.
        settings: Settings with layout ``'coco'``.

    Raises:
        ImportError: scikit-learn is not installed.
        OSError: A file cannot be written.
    """
    (out / 'annotations').mkdir(exist_ok=True)
    for split in SPLITS:
        (out / f'{split}2017').mkdir(exist_ok=True)
        images, annotations = [], []
        for k in range(settings.count(split)):
            scene, path = _draw(settings, split, k), out / _coco_image(split, k)
            _write_image(path, scene.image)
            images.append(
                {
                    'id': k + 1,
                    'file_name': path.name,
                    'height': settings.height,
                    'width': settings.width,
                    'license': 1,
                }
            )
            for instance in scene.instances:
                annotations.append(_coco_annotation(instance, len(annotations) + 1, k + 1))
        record = {
            **_coco_header(settings.coco_names),
            'images': images,
            'annotations': annotations,
        }
        (out / _coco_json(split)).write_text(json.dumps(record), encoding='utf-8')


def label_map(scene: Scene) -> np.ndarray:
    """Paint the objects of a scene into one map of class numbers.

    Args:
        scene: A scene without crowds.

    Returns:
        uint8 of shape (H, W): 0 for background, 1 to 10 for the digits 0 to 9.
    """
    labels = np.zeros(scene.image.shape[:2], np.uint8)
    for instance in scene.instances:
        labels[instance.mask] = instance.label + 1
    return labels


def write_ade(out: Path, settings: DigitSettings) -> None:
    """Write ``images/`` and ``annotations/``, each with ``training/`` and ``validation/``.

    Args:
        out: Existing folder of the data set.
        settings: Settings with layout ``'ade'``.

    Raises:
        ImportError: scikit-learn is not installed.
        OSError: A file cannot be written.
    """
    for kind in ('images', 'annotations'):
        for folder in _ADE_FOLDERS.values():
            (out / kind / folder).mkdir(parents=True, exist_ok=True)
    for split, k in _pictures(settings):
        scene, stem = _draw(settings, split, k), _ade_stem(split, k)
        _write_image(out / f'images/{stem}.jpg', scene.image)
        _write_image(out / f'annotations/{stem}.png', label_map(scene))


def write_imagenet(out: Path, settings: DigitSettings) -> None:
    """Write ``train/<class>/`` and ``val/<class>/``, one digit in each picture.

    Args:
        out: Existing folder of the data set.
        settings: Settings with layout ``'imagenet'``.

    Raises:
        ImportError: scikit-learn is not installed.
        OSError: A file cannot be written.
    """
    for split in SPLITS:
        # Loaders number the classes by the folders they find, so all ten have to be there.
        for name in DIGIT_CLASSES:
            (out / split / name).mkdir(parents=True, exist_ok=True)
    for split, k in _pictures(settings):
        _write_image(out / _imagenet_image(split, k), _draw(settings, split, k).image)


_WRITERS: dict[str, Callable[[Path, DigitSettings], None]] = {
    'coco': write_coco,
    'ade': write_ade,
    'imagenet': write_imagenet,
}


def make_digits(out: str | Path, settings: DigitSettings, force: bool = False) -> bool:
    """Make a demo data set in a folder, unless it is there already.

    Args:
        out: Folder of the data set; it is created when missing.
        settings: What to write.
        force: Write even if the folder holds other files or other settings. Files of an earlier
            data set are removed first; other files stay, but those with the same name are
            overwritten.

    Returns:
        True when the data set was written, False when the folder held it already.

    Raises:
        FileExistsError: The folder holds something else and ``force`` is off, or ``out`` is a file.
        ImportError: scikit-learn is not installed.
        OSError: A file cannot be written.
    """
    out = Path(out)
    if not force:
        if is_current(out, settings):
            return False
        check_free(out, settings)
    load_pool(SPLITS[0])  # a missing package has to show before any file is touched
    out.mkdir(parents=True, exist_ok=True)
    earlier = read_stamp(out)
    if earlier is not None:
        remove_files(out, layout_files(earlier.settings))
    write_stamp(out, Stamp(settings, complete=False))
    _WRITERS[settings.layout](out, settings)
    write_stamp(out, Stamp(settings))
    return True
