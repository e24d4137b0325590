"""Detectors learn from images without objects, and from annotations full of faults."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from mmdet.structures import DetDataSample
from mmdet.structures.mask import BitmapMasks
from mmdet.utils import register_all_modules
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import MODELS, DefaultScope
from mmengine.structures import InstanceData
from PIL import Image

from mmvit_ext.datasets.coco import CocoDataset

DEMO = 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py'
PIPELINE = [
    dict(type='mmvit_ext.LoadImageFromFile'),
    dict(type='mmdet.LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='mmdet.PackDetInputs'),
]


def detector(kind):
    """Cascade Mask R-CNN of the demo, or Mask R-CNN of the same parts."""
    cfg = Config.fromfile(DEMO)
    model = cfg.model
    if kind == 'mask':
        roi_head = model.roi_head
        roi_head.type = 'StandardRoIHead'
        del roi_head['num_stages'], roi_head['stage_loss_weights']
        roi_head.bbox_head = roi_head.bbox_head[0]
        model.train_cfg.rcnn = model.train_cfg.rcnn[0]
        model.type = 'MaskRCNN'
    with DefaultScope.overwrite_default_scope('mmdet'):
        return MODELS.build(model).train()


def learn(model, batch):
    """The loss of a batch, after the backward pass."""
    model.zero_grad()
    loss, _ = model.parse_losses(model(**model.data_preprocessor(batch, True), mode='loss'))
    loss.backward()
    return loss


def without_gradient(model):
    """Trainable parameters that did not take part; in DDP these make other processes wait."""
    return [n for n, p in model.named_parameters() if p.requires_grad and p.grad is None]


@pytest.fixture(scope='module', params=['mask', 'cascade'])
def model(request):
    register_all_modules(init_default_scope=False)
    return detector(request.param)


def empty_sample():
    shape = {'img_shape': (64, 96), 'ori_shape': (64, 96), 'scale_factor': (1.0, 1.0)}
    sample = DetDataSample(metainfo={**shape, 'batch_input_shape': (64, 96)})
    sample.gt_instances = InstanceData(
        bboxes=torch.zeros(0, 4),
        labels=torch.zeros(0, dtype=torch.int64),
        masks=BitmapMasks(np.zeros((0, 64, 96), np.uint8), 64, 96),
    )
    sample.ignored_instances = InstanceData(
        bboxes=torch.zeros(0, 4), labels=torch.zeros(0, dtype=torch.int64)
    )
    return sample


@pytest.mark.parametrize('size', [1, 2])
def test_a_batch_without_any_object(model, size):
    inputs = [torch.randint(0, 256, (3, 64, 96), dtype=torch.uint8) for _ in range(size)]
    batch = {'inputs': inputs, 'data_samples': [empty_sample() for _ in range(size)]}
    loss = learn(model, batch)
    assert loss.isfinite() and loss > 0
    assert without_gradient(model) == []
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


# size of the picture, then its annotations: the faults that public data sets have
PICTURES = [
    ((120, 160), [dict(bbox=[10, 10, 50, 40]), dict(bbox=[5, 5, 0, 30])]),
    ((97, 61), [dict(bbox=[70, 100, 20, 20]), dict(bbox=[3, 3, 30, 40], area=0)]),
    (
        (33, 200),
        [
            dict(bbox=[0, 0, 199, 32]),
            dict(
                bbox=[0, 0, 100, 33],
                iscrowd=1,
                segmentation=dict(size=[33, 200], counts=[0, 3300, 3300]),
            ),
        ],
    ),
    ((64, 64), []),
]


@pytest.fixture
def awkward(tmp_path):
    """A COCO data set whose annotations are partly impossible."""
    images, annotations = [], []
    for i, ((height, width), entries) in enumerate(PICTURES):
        pixels = np.random.default_rng(i).integers(0, 255, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f'{i}.png')
        images.append(dict(id=i, file_name=f'{i}.png', height=height, width=width))
        for entry in entries:
            x, y, w, h = entry['bbox']
            corners = [[x, y, x + w, y, x + w, y + h, x, y + h]]
            known = dict(id=len(annotations) + 1, image_id=i, category_id=1, iscrowd=0)
            annotations.append({**known, 'area': w * h, 'segmentation': corners, **entry})
    content = dict(images=images, annotations=annotations, categories=[dict(id=1, name='thing')])
    (tmp_path / 'a.json').write_text(json.dumps(content))
    return dict(
        ann_file='a.json',
        data_root=str(tmp_path),
        data_prefix=dict(img=''),
        metainfo=dict(classes=('thing',)),
    )


def test_faulty_annotations(model, awkward):
    data = CocoDataset(**awkward, pipeline=PIPELINE)
    batches = [pseudo_collate([data[i] for i in pair]) for pair in ((0, 1), (2, 3))]
    kept = [len(s.gt_instances) for batch in batches for s in batch['data_samples']]
    ignored = [len(s.ignored_instances) for batch in batches for s in batch['data_samples']]
    assert kept == [1, 1, 1, 0] and ignored == [0, 0, 1, 0]
    for batch in batches:
        assert learn(model, batch).isfinite() and without_gradient(model) == []


def test_boxes_alone_train_a_box_detector(awkward):
    file = Path(awkward['data_root'], 'a.json')
    content = json.loads(file.read_text())
    for entry in content['annotations']:
        del entry['segmentation']
    file.write_text(json.dumps(content))
    cfg = Config.fromfile(DEMO)
    del cfg.model.roi_head['mask_head'], cfg.model.roi_head['mask_roi_extractor']
    with DefaultScope.overwrite_default_scope('mmdet'):
        model = MODELS.build(cfg.model).train()
    boxes = dict(type='mmdet.LoadAnnotations', with_bbox=True)
    data = CocoDataset(**awkward, pipeline=[PIPELINE[0], boxes, PIPELINE[2]])
    assert learn(model, pseudo_collate([data[0], data[2]])).isfinite()
    assert without_gradient(model) == []
