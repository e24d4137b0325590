"""Prediction for pictures: drawn results and a JSON file beside each.

The packages' own inference functions and visualizers do the work; this file chooses by the
config's scope and writes the files.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import VISUALIZERS, init_default_scope

from mmvit_ext.errors import UsageError

from .checkpoint_file import trust_mmengine_checkpoints
from .config import read_config, require_file

SUFFIXES = {'.jpg', '.jpeg', '.png', '.bmp', '.tif', '.tiff', '.webp'}

# From a picture's path and pixels, (H, W, 3) uint8 RGB, to what goes into the JSON file and the
# drawn picture, again RGB.
Predictor = Callable[[Path, np.ndarray], tuple[dict[str, Any], np.ndarray]]


def predict(args: argparse.Namespace) -> None:
    """Predicts as ``tools/predict.py`` was told to, and prints where the results are.

    For ``a.jpg`` it writes ``a.jpg`` (drawn) and ``a.jpg.json`` into the output folder.

    Raises:
        UsageError: On a missing file or folder, if the drawn pictures would replace the given
            ones, and at the end if a picture could not be read.
    """
    pictures = find_pictures(args.source)[: args.limit]
    out = Path(args.out)
    if out.resolve() == pictures[0].parent.resolve():
        raise UsageError(
            f'--out={args.out}: the drawn pictures would replace those of {args.source}; give '
            'another folder'
        )
    require_file('checkpoint', args.checkpoint)
    cfg = read_config(args.config)
    trust_mmengine_checkpoints()
    device = args.device
    if device == 'auto':
        device = 'cuda:0' if torch.cuda.is_available() else 'cpu'
    init_default_scope(cfg.default_scope)
    predictor = PREDICTORS[cfg.default_scope](cfg, args.checkpoint, device, args.score)
    out.mkdir(parents=True, exist_ok=True)
    unreadable = []
    for picture in pictures:
        image = cv2.imread(str(picture))
        # OpenCV answers None for what it cannot decode
        if image is None:
            unreadable.append(str(picture))
            continue
        record, drawn = predictor(picture, cv2.cvtColor(image, cv2.COLOR_BGR2RGB))
        mmcv.imwrite(drawn[..., ::-1], str(out / picture.name))
        text = json.dumps({'image': str(picture), **record}, indent=1)
        (out / f'{picture.name}.json').write_text(text, encoding='utf-8')
    print(f'{len(pictures) - len(unreadable)} predictions in {out.absolute()}')
    if unreadable:
        raise UsageError(
            f'{len(unreadable)} of {len(pictures)} pictures could not be read: '
            f'{", ".join(unreadable[:5])}; the others are done'
        )


def find_pictures(source: str) -> list[Path]:
    """A picture by itself, or the pictures of a folder in order of their names.

    Raises:
        UsageError: If there are none.
    """
    path = Path(source)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f'source={source}: no such picture or folder')
    found = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
    if not found:
        raise UsageError(f'source={source}: no picture there ({", ".join(sorted(SUFFIXES))})')
    return found


def build_visualizer(cfg: Config, dataset_meta: dict) -> Any:
    """The visualizer of a config, which draws into memory only.

    Args:
        cfg: The config; its default scope is that of the package.
        dataset_meta: The data set's ``metainfo``, so the names of the classes.

    Returns:
        The package's own visualizer.
    """
    visualizer = VISUALIZERS.build({**cfg.visualizer, 'vis_backends': None})
    visualizer.dataset_meta = dataset_meta
    return visualizer


def _detector(cfg: Config, checkpoint: str, device: str, score: float) -> Predictor:
    from mmdet.apis import inference_detector, init_detector

    model = init_detector(cfg, checkpoint, device=device)
    visualizer = build_visualizer(cfg, model.dataset_meta)
    classes = model.dataset_meta['classes']

    def run(picture: Path, image: np.ndarray) -> tuple[dict, np.ndarray]:
        sample = inference_detector(model, str(picture)).cpu()
        visualizer.add_datasample(
            'prediction', image, sample, draw_gt=False, pred_score_thr=score, show=False
        )
        kept = sample.pred_instances[sample.pred_instances.scores >= score]
        return {'detections': _detections(kept, classes)}, visualizer.get_image()

    return run


def _detections(instances: Any, classes: list[str]) -> list[dict]:
    """Label, score, box (x1, y1, x2, y2 in pixels) and mask (COCO's RLE) of each object."""
    from mmdet.structures.mask import encode_mask_results

    found = [
        {'label': classes[label], 'score': round(score, 4), 'bbox': [round(v, 2) for v in box]}
        for label, score, box in zip(
            instances.labels.tolist(), instances.scores.tolist(), instances.bboxes.tolist()
        )
    ]
    if 'masks' in instances:
        for entry, rle in zip(found, encode_mask_results(instances.masks.numpy())):
            entry['mask'] = {'size': rle['size'], 'counts': rle['counts'].decode('ascii')}
    return found


def _segmentor(cfg: Config, checkpoint: str, device: str, score: float) -> Predictor:
    from mmseg.apis import inference_model, init_model

    # mmseg looks for it here, whatever the dataset's own pipeline is
    cfg.setdefault('test_pipeline', cfg.test_dataloader.dataset.pipeline)
    model = init_model(cfg, checkpoint, device=device)
    visualizer = build_visualizer(cfg, model.dataset_meta)
    classes = model.dataset_meta['classes']

    def run(picture: Path, image: np.ndarray) -> tuple[dict, np.ndarray]:
        sample = inference_model(model, str(picture)).cpu()
        visualizer.add_datasample('prediction', image, sample, draw_gt=False, show=False)
        labels, counts = np.unique(sample.pred_sem_seg.data.numpy(), return_counts=True)
        pixels = {classes[label]: int(count) for label, count in zip(labels, counts)}
        return {'pixels': pixels}, visualizer.get_image()

    return run


def _classifier(cfg: Config, checkpoint: str, device: str, score: float) -> Predictor:
    from mmpretrain import ImageClassificationInferencer

    inferencer = ImageClassificationInferencer(cfg, pretrained=checkpoint, device=device)
    visualizer = build_visualizer(cfg, {'classes': inferencer.classes})

    def run(picture: Path, image: np.ndarray) -> tuple[dict, np.ndarray]:
        sample = inferencer(str(picture), return_datasamples=True)[0]
        visualizer.visualize_cls(image, sample, classes=inferencer.classes, draw_gt=False)
        label = int(sample.pred_label)
        name = inferencer.classes[label] if inferencer.classes else label
        record = {'label': name, 'score': round(float(sample.pred_score[label]), 4)}
        return record, visualizer.get_image()

    return run


PREDICTORS = {'mmdet': _detector, 'mmseg': _segmentor, 'mmpretrain': _classifier}
