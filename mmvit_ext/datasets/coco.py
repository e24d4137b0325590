"""COCO annotations whose faults are said before training begins."""

import json
import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmdet.datasets import CocoDataset as MMDetCocoDataset
from mmdet.datasets.api_wrappers import COCO
from mmengine.logging import print_log

from mmvit_ext.errors import UsageError
from mmvit_ext.registry import DATASETS

from .coco_boxes import box_fault

# kinds that are counted besides those of box_fault
CROWD = 'crowd'
NO_AREA = 'no area'


@DATASETS.register_module()
class CocoDataset(MMDetCocoDataset):
    """mmdet's data set, with the same arguments, that says what is wrong with an annotation file.

    - ``metainfo.classes`` of which none is in the file stop the run, as does a training set of
      which filtering leaves no image. If only some are missing, or the order is not the file's, one
      line warns: mmdet numbers the classes in the file's order.
    - Impossible boxes (:func:`mmvit_ext.datasets.coco_boxes.box_fault`) are skipped, and one line
      counts them by kind. ``filter_cfg.filter_empty_gt`` then leaves out images that have no other.
    - A box whose ``area`` is missing or 0 counts with width times height.
    - Annotations without ``segmentation`` do for pipelines that load no masks, and stop the others.

    Attributes:
        box_counts: Boxes of the wanted classes that were skipped or changed, by kind.

    Raises:
        UsageError: On wrong classes, an unreadable or empty file, or missing masks.
    """

    @classmethod
    def _load_metainfo(cls, metainfo: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Refuses a name in the place of a list of names; mmengine takes a file of names, too."""
        classes = (metainfo or {}).get('classes')
        if isinstance(classes, str) and not Path(classes).is_file():
            raise UsageError(
                f'metainfo.classes={classes!r}: one string, where a list of names is wanted; a '
                f'tuple of one name needs a comma: metainfo.classes=({classes!r},)'
            )
        return super()._load_metainfo(metainfo)

    def load_data_list(self) -> list[dict]:
        """Reads the annotation file and logs what was skipped.

        Returns:
            One dict for each image, as mmdet's.

        Raises:
            UsageError: See the class.
        """
        self.box_counts: Counter[str] = Counter()
        self._wants_masks = any(
            getattr(transform, 'with_mask', False) for transform in self.pipeline.transforms
        )
        data_list = super().load_data_list()
        line = describe_boxes(self.box_counts)
        if line:
            print_log(f'{self.ann_file}: {line}', 'current')
        unmeasured = self.box_counts[NO_AREA]
        if self.test_mode and unmeasured:
            print_log(
                f"{self.ann_file}: {unmeasured} boxes without area; COCO's evaluation reads it: "
                'write width * height into the file',
                'current',
                level=logging.WARNING,
            )
        return data_list

    def COCOAPI(self, path: str) -> COCO:
        """Reads the file; mmdet has a class here, and calls it first of all.

        Args:
            path: The annotation file.

        Returns:
            Its content, indexed.

        Raises:
            UsageError: If it is no COCO file, or its classes are others.
        """
        try:
            coco = COCO(path)
        # not JSON, no dict, or without the fields that are indexed
        except (json.JSONDecodeError, UnicodeDecodeError, AssertionError, KeyError) as error:
            raise UsageError(
                f'ann_file={self.ann_file}: not a complete COCO file '
                f'({type(error).__name__}: {error}); make or fetch it again'
            ) from error
        self._check_ids(coco)
        self._check_classes(coco)
        # looked up for every annotation
        self._wanted = set(coco.get_cat_ids(cat_names=self.metainfo['classes']))
        return coco

    def _check_ids(self, coco: COCO) -> None:
        doubled = len(coco.dataset.get('annotations', ())) - len(coco.anns)
        if doubled:
            raise UsageError(
                f'ann_file={self.ann_file}: {doubled} annotations have the id of another one; '
                'number them anew'
            )

    def _check_classes(self, coco: COCO) -> None:
        wanted = list(self.metainfo['classes'])
        found = [category.get('name') for category in coco.dataset.get('categories', ())]
        common = [name for name in found if name in wanted]
        if not common:
            raise UsageError(
                f'metainfo.classes: wanted {_names(wanted)}, found {_names(found)} in '
                f'{self.ann_file}; 0 of {len(coco.imgs)} images remain; set metainfo.classes to '
                'names of the file'
            )
        doubled = sorted(name for name, n in Counter(common).items() if n > 1)
        if doubled:
            raise UsageError(
                f'ann_file={self.ann_file}: several categories are named {_names(doubled)}; give '
                'each its own name'
            )
        missing = [name for name in wanted if name not in found]
        if missing:
            self._warn_of_names(f'{_names(missing)} missing in', common, wanted)
        elif common != wanted:
            self._warn_of_names('in another order than', common, wanted)

    def _warn_of_names(self, what: str, common: list[str], wanted: list[str]) -> None:
        moved = [name for i, name in enumerate(common) if wanted[i] != name]
        numbers = f', so {_names(moved)} are shown under wrong names' if moved else ''
        print_log(
            f"metainfo.classes: {what} {self.ann_file}; labels follow the file's order{numbers}; "
            f'set metainfo.classes to {_names(common)}',
            'current',
            level=logging.WARNING,
        )

    def parse_data_info(self, raw_data_info: dict) -> dict:
        """Drops impossible boxes and those of other classes, then does as mmdet does.

        Args:
            raw_data_info: Dict of ``raw_img_info`` and ``raw_ann_info``, COCO's entries.

        Returns:
            The image's information.

        Raises:
            UsageError: If the image has no size, or a mask is wanted that the file lacks.
        """
        image = raw_data_info['raw_img_info']
        if not (image.get('width') and image.get('height')):
            raise UsageError(
                f'ann_file={self.ann_file}: image {image["id"]} ({image.get("file_name")}) has no '
                'width or height; write them into the file'
            )
        kept = []
        for ann in raw_data_info['raw_ann_info']:
            if ann.get('category_id') in self._wanted and not ann.get('ignore'):
                kept.extend(self._checked(ann, image['width'], image['height']))
        return super().parse_data_info({'raw_img_info': image, 'raw_ann_info': kept})

    def _checked(self, ann: dict, width: int, height: int) -> list[dict]:
        """An annotation as mmdet can take it, or nothing."""
        fault = box_fault(ann.get('bbox'), width, height)
        if fault:
            self.box_counts[fault] += 1
            return []
        if self._wants_masks and not ann.get('segmentation'):
            raise UsageError(
                f'ann_file={self.ann_file}: annotation {ann["id"]} has no segmentation, and the '
                'pipeline loads masks; use a model without a mask head and with_mask=False in '
                'LoadAnnotations, or leave the annotation out'
            )
        if ann.get('iscrowd'):
            self.box_counts[CROWD] += 1
        if (ann.get('area') or 0) > 0:
            return [ann]
        self.box_counts[NO_AREA] += 1
        return [{**ann, 'area': ann['bbox'][2] * ann['bbox'][3]}]

    def filter_data(self) -> list[dict]:
        """Filters as mmdet does, but by the boxes that are left.

        Returns:
            What remains.

        Raises:
            UsageError: If that is nothing, in training.
        """
        kept = super().filter_data()
        if self.test_mode:
            return kept
        cfg = self.filter_cfg or {}
        if cfg.get('filter_empty_gt', False):
            kept = [info for info in kept if info['instances']]
        if not kept:
            raise UsageError(
                f'{self.ann_file}: 0 of {len(self.data_list)} images remain after '
                f'filter_cfg={dict(cfg)} for {_names(self.metainfo["classes"])}; set '
                'metainfo.classes, filter_cfg.filter_empty_gt=False or a lower filter_cfg.min_size'
            )
        return kept


def describe_boxes(counts: Counter[str]) -> str:
    """One line about boxes that were skipped or changed.

    Args:
        counts: ``box_counts`` of a data set.

    Returns:
        The line; empty where there is nothing to say.
    """
    skipped = {kind: n for kind, n in counts.items() if kind not in (CROWD, NO_AREA)}
    parts = []
    if skipped:
        kinds = ', '.join(f'{n} {kind}' for kind, n in sorted(skipped.items()))
        parts.append(f'skipped {_number(sum(skipped.values()), "box", "boxes")}: {kinds}')
    if counts[NO_AREA]:
        parts.append(f'{_number(counts[NO_AREA], "box", "boxes")} without area: width * height')
    if counts[CROWD]:
        crowds = _number(counts[CROWD], 'crowd region is', 'crowd regions are')
        parts.append(f'{crowds} ignored in training')
    return '; '.join(parts)


def _number(count: int, one: str, more: str) -> str:
    return f'{count} {one if count == 1 else more}'


def _names(names: list[str]) -> str:
    """At most ten names, quoted."""
    shown = ', '.join(repr(name) for name in list(names)[:10])
    rest = f' and {len(names) - 10} more' if len(names) > 10 else ''
    return f'{shown}{rest}' if names else 'none'
