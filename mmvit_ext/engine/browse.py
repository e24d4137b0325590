"""A sheet of samples, augmented and labelled as a model gets them."""

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import DATASETS, init_default_scope
from mmengine.runner import set_random_seed

from mmvit_ext.errors import UsageError

from .check_data import data_config
from .data_root import check_data, datasets_of
from .predict import build_visualizer

# side of a sample on the sheet, and the gap between two, in pixels
CELL, GAP = 320, 4


def browse(args: argparse.Namespace) -> None:
    """Draws as ``tools/analysis_tools/browse_dataset.py`` was told to.

    Raises:
        UsageError: On an argument, config value or data set that cannot work.
    """
    if args.number < 1:
        raise UsageError(f'--number={args.number}: nothing to draw; give 1 or more')
    loader = f'{args.split}_dataloader'
    cfg = data_config(args)
    if not cfg.get(loader):
        raise UsageError(f'--split={args.split}: the config has no {loader}; choose another split')
    check_data(cfg, (loader,))
    # the visualizers draw by matplotlib, which may look for a display
    os.environ.setdefault('MPLBACKEND', 'Agg')
    init_default_scope(cfg.default_scope)
    set_random_seed(args.seed)
    dataset = DATASETS.build(cfg[loader].dataset)
    order = np.random.default_rng(args.seed).permutation(len(dataset))
    chosen = sorted(order[: args.number].tolist())
    draw = DRAWERS[cfg.default_scope](cfg, dataset.metainfo)
    original = labels_keep_size(cfg, loader)
    pictures = []
    for i in chosen:
        sample = dataset[i]
        picture, labels = to_picture(sample['inputs'], cfg), sample['data_samples']
        if original:
            picture = mmcv.imresize(picture, labels.ori_shape[::-1])
        pictures.append(draw(picture, labels))
    out = Path(args.out)
    try:
        mmcv.imwrite(sheet(pictures)[..., ::-1], str(out))
    except (cv2.error, OSError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise UsageError(
            f'--out={args.out}: cannot be written ({reason}); give a .jpg or .png file'
        ) from error
    numbers = ', '.join(map(str, chosen))
    print(f'{len(chosen)} of {len(dataset)} samples of {loader} ({numbers}) in {out.absolute()}')


def to_picture(inputs: torch.Tensor, cfg: Config) -> np.ndarray:
    """The pixels of a sample as they can be looked at.

    Args:
        inputs: (3, H, W) or (1, H, W), 0 to 255, as the pipeline packs them; values outside are
            cut off.
        cfg: The config; its data preprocessor tells whether the order is BGR.

    Returns:
        (H, W, 3), uint8, RGB.
    """
    preprocessor = {
        **((cfg.get('model') or {}).get('data_preprocessor') or {}),
        # mmpretrain's place for it
        **(cfg.get('data_preprocessor') or {}),
    }
    picture = inputs.permute(1, 2, 0).numpy()
    if preprocessor.get('bgr_to_rgb') or preprocessor.get('to_rgb'):
        picture = picture[..., ::-1]
    picture = np.broadcast_to(picture, (*picture.shape[:2], 3))
    return np.ascontiguousarray(picture.clip(0, 255).astype(np.uint8))


def labels_keep_size(cfg: Config, loader: str) -> bool:
    """Whether labels are loaded after the image is resized, and so belong to its original size.

    Args:
        cfg: The config.
        loader: A dataloader; the first of several datasets stands for all.

    Returns:
        True for the usual test pipelines of mmdet and mmseg, False for those of training.
    """
    _, dataset = next(datasets_of(cfg, loader))
    names = [str(step.type).rsplit('.', 1)[-1] for step in dataset.get('pipeline') or ()]
    before = names[: names.index('LoadAnnotations')] if 'LoadAnnotations' in names else ()
    return any('Resize' in name for name in before)


def sheet(pictures: list[np.ndarray]) -> np.ndarray:
    """Puts pictures side by side, in rows, each shrunken or enlarged to one size of cell.

    Args:
        pictures: One or more of (H, W, 3), uint8.

    Returns:
        White sheet of (H', W', 3) with the pictures in reading order.
    """
    columns = math.ceil(math.sqrt(len(pictures)))
    rows = math.ceil(len(pictures) / columns)
    step = CELL + GAP
    result = np.full((rows * step + GAP, columns * step + GAP, 3), 255, np.uint8)
    for i, picture in enumerate(pictures):
        small = mmcv.imrescale(picture, (CELL, CELL))
        top, left = GAP + i // columns * step, GAP + i % columns * step
        result[top : top + small.shape[0], left : left + small.shape[1]] = small
    return result


Drawer = Callable[[np.ndarray, Any], np.ndarray]


def _detection(cfg: Config, meta: dict) -> Drawer:
    from mmdet.structures.bbox import BaseBoxes
    from mmdet.structures.mask import BitmapMasks, PolygonMasks

    visualizer = build_visualizer(cfg, meta)

    def draw(picture: np.ndarray, sample: Any) -> np.ndarray:
        # the visualizer takes plain boxes and bitmaps
        instances = sample.gt_instances
        if isinstance(instances.get('bboxes'), BaseBoxes):
            instances.bboxes = instances.bboxes.tensor
        if isinstance(instances.get('masks'), BitmapMasks | PolygonMasks):
            instances.masks = instances.masks.to_ndarray().astype(bool)
        visualizer.add_datasample('sample', picture, sample, draw_pred=False, show=False)
        return visualizer.get_image()

    return draw


def _segmentation(cfg: Config, meta: dict) -> Drawer:
    visualizer = build_visualizer(cfg, meta)

    def draw(picture: np.ndarray, sample: Any) -> np.ndarray:
        visualizer.add_datasample('sample', picture, sample, draw_pred=False, show=False)
        return visualizer.get_image()

    return draw


def _classification(cfg: Config, meta: dict) -> Drawer:
    visualizer = build_visualizer(cfg, meta)

    def draw(picture: np.ndarray, sample: Any) -> np.ndarray:
        # small pictures leave no room for the name
        picture = mmcv.imrescale(picture, (CELL, CELL))
        visualizer.visualize_cls(picture, sample, classes=meta.get('classes'), draw_pred=False)
        return visualizer.get_image()

    return draw


DRAWERS = {'mmdet': _detection, 'mmseg': _segmentation, 'mmpretrain': _classification}
