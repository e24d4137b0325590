"""Every backbone in Mask R-CNN with FPN and in UperNet: a training step and a test step."""

from pathlib import Path

import numpy as np
import pytest
import torch
from mmdet.structures import DetDataSample
from mmdet.structures.mask import BitmapMasks
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, DefaultScope
from mmengine.structures import InstanceData, PixelData
from mmseg.structures import SegDataSample

DEMO = Path(__file__).parents[2] / 'configs' / 'demo'
PYRAMIDS = ['ShiftViT', 'ReSwin', 'ReMViTv2', 'AugSwin']
NAMES = [*PYRAMIDS, 'ReViT', 'AugViT']
CLASSES = 3
# batches of one and two images, no side a multiple of a window or a stride
BATCHES = [[(65, 97)], [(71, 90), (71, 90)]]
# weight decay would move a weight that has no gradient
OPTIMIZER = {
    'type': 'OptimWrapper',
    'optimizer': {'type': 'AdamW', 'lr': 1e-3, 'weight_decay': 0.0},
}


def backbone_and_pyramid(name):
    """Config of a nano backbone, channels of its four maps, and what makes plain maps a pyramid."""
    backbone = {'type': f'mmvit_ext.{name}', 'arch': 'nano', 'out_indices': (0, 1, 2, 3)}
    # a block that stochastic depth drops for a whole batch would not move
    backbone['drop_path_rate'] = 0.0
    if name in PYRAMIDS:
        return backbone, [48, 96, 192, 384], []
    pyramid = {
        'type': 'mmseg.Feature2Pyramid',
        'embed_dim': 96,
        'rescales': [4, 2, 1, 0.5],
        'norm_cfg': {'type': 'BN'},
    }
    return {**backbone, 'img_size': 64}, [96] * 4, [pyramid]


def detector(name):
    """Mask R-CNN, slim."""
    base = "_base_ = 'mmdet::_base_/models/mask-rcnn_r50_fpn.py'"
    cfg = Config.fromstring(base, '.py').model
    backbone, channels, pyramid = backbone_and_pyramid(name)
    cfg.backbone = backbone
    fpn = {**cfg.neck, 'in_channels': channels, 'out_channels': 32}
    cfg.neck = [*pyramid, fpn] if pyramid else fpn
    cfg.rpn_head.update(in_channels=32, feat_channels=32)
    for part in ('bbox_roi_extractor', 'mask_roi_extractor'):
        cfg.roi_head[part].out_channels = 32
    cfg.roi_head.bbox_head.update(in_channels=32, fc_out_channels=64, num_classes=CLASSES)
    cfg.roi_head.mask_head.update(
        num_convs=1, in_channels=32, conv_out_channels=32, num_classes=CLASSES
    )
    cfg.train_cfg.rpn_proposal.update(nms_pre=100, max_per_img=50)
    cfg.train_cfg.rcnn.sampler.num = 32
    cfg.test_cfg.rpn.update(nms_pre=100, max_per_img=50)
    # an untrained head's scores lie near 1 / (classes + 1)
    cfg.test_cfg.rcnn.score_thr = 0.0
    return cfg


def segmentor(name):
    """UperNet of the demo, slim."""
    cfg = Config.fromfile(DEMO / 'upernet_reswin-nano_digits.py').model
    backbone, channels, pyramid = backbone_and_pyramid(name)
    cfg.backbone = backbone
    cfg.neck = pyramid[0] if pyramid else None
    # batch norm knows no spread where one image is pooled to one pixel
    norm_cfg = {'type': 'GN', 'num_groups': 4}
    cfg.decode_head.update(
        in_channels=channels, channels=32, num_classes=CLASSES, norm_cfg=norm_cfg
    )
    cfg.auxiliary_head.update(in_channels=channels[2], num_classes=CLASSES, norm_cfg=norm_cfg)
    cfg.data_preprocessor.pop('size')
    cfg.data_preprocessor.size_divisor = 32
    return cfg


def meta(size):
    """What a pipeline tells of an image it left as it was."""
    return {
        'img_shape': size,
        'ori_shape': size,
        'pad_shape': size,
        'batch_input_shape': size,
        'scale_factor': (1.0, 1.0),
        'flip': False,
        'img_id': 0,
    }


def scene(size, objects):
    """Squares on an image: boxes, masks and classes."""
    h, w = size
    boxes, masks = torch.zeros(objects, 4), np.zeros((objects, h, w), np.uint8)
    for i in range(objects):
        x, y, side = 5 + 20 * i, 10 + 9 * i, 18
        boxes[i] = torch.tensor([x, y, x + side, y + side])
        masks[i, y : y + side, x : x + side] = 1
    sample = DetDataSample(metainfo=meta(size))
    labels = torch.arange(objects) % CLASSES
    sample.gt_instances = InstanceData(bboxes=boxes, labels=labels, masks=BitmapMasks(masks, h, w))
    return sample


def label_map(size):
    """Classes of an image's pixels: a square and a stripe on background."""
    sample = SegDataSample(metainfo=meta(size))
    labels = torch.zeros(1, *size, dtype=torch.long)
    labels[:, 10:40, 20:60], labels[:, 50:] = 1, 2
    sample.gt_sem_seg = PixelData(data=labels)
    return sample


def batch(sizes, sample):
    """Random images, and what ``sample`` makes for each from its index and size."""
    images = [torch.randint(0, 256, (3, *size), dtype=torch.uint8) for size in sizes]
    return {'inputs': images, 'data_samples': [sample(i, size) for i, size in enumerate(sizes)]}


def train_and_test(cfg, scope, data):
    """One step of each; every weight of the backbone moves and stays finite."""
    with DefaultScope.overwrite_default_scope(scope):
        model = MODELS.build(cfg)
        model.init_weights()
        model.train()
        before = {n: p.detach().clone() for n, p in model.backbone.named_parameters()}
        losses = model.train_step(data, build_optim_wrapper(model, OPTIMIZER))
        assert all(torch.as_tensor(value).isfinite().all() for value in losses.values())
        # not a number differs from every weight, so moving alone would let it pass
        assert [n for n, p in model.backbone.named_parameters() if not p.isfinite().all()] == []
        still = [n for n, p in model.backbone.named_parameters() if torch.equal(p, before[n])]
        assert still == []
        with torch.no_grad():
            return model.eval().test_step(data)


@pytest.mark.parametrize('sizes', BATCHES, ids=['one', 'two'])
@pytest.mark.parametrize('name', NAMES)
def test_mask_rcnn(name, sizes):
    # the second image is without any object
    data = batch(sizes, lambda i, size: scene(size, 0 if i else 3))
    results = train_and_test(detector(name), 'mmdet', data)
    for (h, w), result in zip(sizes, results, strict=True):
        found = result.pred_instances
        assert len(found) > 0 and found.masks.shape[1:] == (h, w)
        assert (found.bboxes >= 0).all()
        assert (found.bboxes <= torch.tensor([w, h, w, h])).all()


@pytest.mark.parametrize('sizes', BATCHES, ids=['one', 'two'])
@pytest.mark.parametrize('name', NAMES)
def test_upernet(name, sizes):
    data = batch(sizes, lambda i, size: label_map(size))
    results = train_and_test(segmentor(name), 'mmseg', data)
    for size, result in zip(sizes, results, strict=True):
        found = result.pred_sem_seg.data
        assert found.shape == (1, *size) and found.max() < CLASSES
        assert result.seg_logits.data.isfinite().all()
