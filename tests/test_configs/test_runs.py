"""Configs of every family train two iterations and evaluate, at nano width, on digits."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config

from mmvit_ext.datasets import DigitSettings, make_digits
from mmvit_ext.engine.cli import train_parser
from mmvit_ext.engine.run import train

CONFIGS = Path(__file__).parents[2] / 'configs'
WIDTHS = [48, 96, 192, 384]

IN1K = [
    'shiftvit/shiftvit-t_8xb128_in1k',
    'reswin/reswin-t_1xb256-acc4_in1k',
    'remvitv2/remvitv2-t_2xb128-acc8_in1k',
    'revit/revit-b_2xb128-acc16_in1k',
    'augvit/augvit-s_8xb128_in1k',
    'augswin/augswin-t_16xb64_in1k',
    'plain/deit-s_8xb128_in1k',
    'ablations/shiftvit-t-90e-bn-relu-sgd_8xb128_in1k',
]
COCO = [
    'shiftvit/mask-rcnn_shiftvit-t_8xb2-ms-crop-1x_coco',
    'shiftvit/cascade-mask-rcnn_shiftvit-t_8xb2-ms-crop-3x_coco',
    'reswin/mask-rcnn_reswin-t_8xb2-ms-3x_coco',
    'remvitv2/mask-rcnn_remvitv2-t_8xb8-ms-3x-linear_coco',
    'augswin/mask-rcnn_augswin-t_8xb2-ms-crop-1x_coco',
    'plain/cascade-mask-rcnn_mvitv2-t_8xb8-ms-crop-1x_coco',
]
ADE = [
    'shiftvit/upernet_shiftvit-t_8xb2-160k_ade20k-512x512',
    'reswin/upernet_reswin-t_8xb2-160k_ade20k-512x512',
    'remvitv2/upernet_remvitv2-t_8xb2-160k_ade20k-512x512',
    'augswin/upernet_augswin-t_8xb2-160k_ade20k-512x512',
    'revit/upernet_revit-b_8xb2-160k_ade20k-512x512',
]
TRANSFER = [
    'revit/revit-b_8xb64_pets',
    'plain/vit-b_8xb64_pets',
    'augvit/augvit-s_8xb64_flowers102',
]


@pytest.fixture(scope='module')
def digits(tmp_path_factory):
    """Folders of tiny digit data by layout."""
    root = tmp_path_factory.mktemp('digits')
    for layout in ('coco', 'ade', 'imagenet'):
        settings = DigitSettings(
            layout, train=4, val=2, height=96, width=96, coco_names=layout == 'coco'
        )
        make_digits(root / layout, settings)
    pictures = sorted((root / 'imagenet' / 'train').rglob('*.*'))
    make_pets(root / 'pets', pictures)
    make_flowers(root / 'flowers102', pictures)
    return root


def make_pets(root, pictures):
    """The layout of Oxford-IIIT Pet: image, class (from 1), species, breed."""
    (root / 'annotations').mkdir(parents=True)
    (root / 'images').mkdir()
    for i, picture in enumerate(pictures):
        shutil.copy(picture, root / 'images' / f'pet_{i}.jpg')
    lines = ''.join(f'pet_{i} {i + 1} 1 1\n' for i in range(len(pictures)))
    for split in ('trainval', 'test'):
        (root / 'annotations' / f'{split}.txt').write_text(lines)


def make_flowers(root, pictures):
    """The layout of Flowers-102: image_00001.jpg and so on, labels from 1, splits by number."""
    from scipy.io import savemat

    (root / 'jpg').mkdir(parents=True)
    numbers = np.arange(1, len(pictures) + 1)
    for number, picture in zip(numbers, pictures):
        shutil.copy(picture, root / 'jpg' / f'image_{number:05}.jpg')
    savemat(root / 'imagelabels.mat', {'labels': numbers[None]})
    savemat(root / 'setid.mat', {'trnid': numbers[:2], 'valid': numbers[2:], 'tstid': numbers})


def nano(cfg):
    """What makes a config's model nano, as options."""
    pyramid = cfg.model.backbone.type not in ('mmvit_ext.ReViT', 'mmvit_ext.AugViT')
    options = {'model.backbone.arch': 'nano', 'model.backbone.drop_path_rate': 0.1}
    # settings of a variant that hold for its own depth alone
    if 'out_indices' in cfg.model.backbone and not pyramid:
        options['model.backbone.out_indices'] = [0, 1, 2, 3]
    widths = WIDTHS if pyramid else [96] * 4
    if 'head' in cfg.model:
        options['model.head.in_channels'] = widths[-1]
    if cfg.model.get('neck', {}) and 'embed_dim' in cfg.model.neck:
        options['model.neck.embed_dim'] = 96
    elif cfg.model.get('neck', {}) and 'in_channels' in cfg.model.neck:
        options['model.neck.in_channels'] = widths
    if 'decode_head' in cfg.model:
        options.update(
            {
                'model.decode_head.in_channels': widths,
                'model.decode_head.channels': 32,
                'model.auxiliary_head.in_channels': widths[2],
            }
        )
    return options


def small(cfg):
    """What makes data and run small, as options."""
    options = {'train_dataloader.batch_size': 2, 'train_dataloader.dataset.indices': 4}
    options['default_hooks.logger.interval'] = 1
    for loader in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        options.update({f'{loader}.num_workers': 0, f'{loader}.persistent_workers': False})
    if cfg.train_cfg.type == 'IterBasedTrainLoop':
        options.update({'train_cfg.max_iters': 2, 'train_cfg.val_interval': 2})
    else:
        options.update({'train_cfg.max_epochs': 1, 'train_cfg.val_interval': 1})
    if cfg.default_scope == 'mmdet':
        options.update(small_detection(cfg))
    if cfg.default_scope == 'mmseg':
        options['model.data_preprocessor.size'] = (64, 64)
        options['train_dataloader.dataset.pipeline.2.scale'] = (128, 64)
        options['train_dataloader.dataset.pipeline.3.crop_size'] = (64, 64)
        options['val_dataloader.dataset.pipeline.1.scale'] = (128, 64)
    return options


def small_detection(cfg):
    pipeline = cfg.train_dataloader.dataset.pipeline
    place = 'train_dataloader.dataset.pipeline'
    options = {'val_dataloader.dataset.pipeline.1.scale': (160, 96)}
    if pipeline[3].type == 'RandomChoice':
        for step in ('0.0', '1.0', '1.2'):
            options[f'{place}.3.transforms.{step}.scales'] = [(96, 160)]
        options[f'{place}.3.transforms.1.1.crop_size'] = (64, 80)
    else:
        options[f'{place}.2.scales'] = [(96, 160)]
    options['train_dataloader.dataset.filter_cfg.min_size'] = 1
    options['model.train_cfg.rpn_proposal.max_per_img'] = 50
    options['model.test_cfg.rpn.max_per_img'] = 50
    # without any detection there is nothing to evaluate
    options['model.test_cfg.rcnn.score_thr'] = 0.0
    stages = cfg.model.train_cfg.rcnn
    many = isinstance(stages, list)
    for place in [f'rcnn.{i}' for i in range(len(stages))] if many else ['rcnn']:
        options[f'model.train_cfg.{place}.sampler.num'] = 16
    return options


def run(stem, data_root, work_dir, **more):
    """Trains as ``tools/train.py`` does; gives the losses and the last line of the log."""
    file = CONFIGS / f'{stem}.py'
    cfg = Config.fromfile(file)
    args = train_parser().parse_args(
        [str(file), '--data-root', str(data_root), '--work-dir', str(work_dir), '--seed', '0']
    )
    args.cfg_options = {**nano(cfg), **small(cfg), **more}
    train(args)
    (log,) = work_dir.glob('*/*.log')
    lines = log.read_text().splitlines()
    losses = [re.search(r'  loss: (\S+)', line) for line in lines if '(train)' in line]
    assert len(losses) == 2 and all(np.isfinite(float(loss[1])) for loss in losses)
    return [line for line in lines if '(val)' in line][-1]


@pytest.mark.slow
@pytest.mark.parametrize('stem', IN1K)
def test_imagenet(stem, digits, tmp_path):
    classes = sorted(p.name for p in (digits / 'imagenet' / 'train').iterdir())
    more = {f'{s}_dataloader.dataset.metainfo.classes': classes for s in ('train', 'val', 'test')}
    assert 'accuracy/top5: ' in run(stem, digits / 'imagenet', tmp_path, **more)


@pytest.mark.slow
@pytest.mark.parametrize('stem', COCO)
def test_coco(stem, digits, tmp_path):
    assert 'coco/segm_mAP: ' in run(stem, digits / 'coco', tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize('stem', ADE)
def test_ade20k(stem, digits, tmp_path):
    assert 'mIoU: ' in run(stem, digits / 'ade', tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize('stem', TRANSFER)
def test_transfer(stem, digits, tmp_path):
    assert 'accuracy/top1: ' in run(stem, digits / stem.split('_')[-1], tmp_path)
