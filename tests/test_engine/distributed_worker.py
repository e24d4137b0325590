"""Trains small models as one of several processes, for test_distributed.py.

Started by torch's launcher: ``distributed_worker.py FOLDER CASE...``. Each case loads
``FOLDER/CASE.pth`` and writes its losses and weights to ``FOLDER/CASE_RANK.pth``.
"""

import copy
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import DATASETS, MODELS, DefaultScope
from torch.utils.data import Dataset

import mmvit_ext  # noqa: F401  installs the stand-in before anything imports mmdet
from mmvit_ext.engine.distributed import leave_cpu
from mmvit_ext.engine.run import _build_runner

BASE = Path(__file__).parents[2] / 'configs' / '_base_'
STEPS, GLOBAL_BATCH, SIDE = 3, 4, 64
SWIN = {'type': 'mmvit_ext.ReSwin', 'arch': 'nano', 'alpha_mode': 'shared', 'window_size': 4}
SHIFT = {'type': 'mmvit_ext.ShiftViT', 'arch': 'nano'}
AUG = {
    'type': 'mmvit_ext.AugViT',
    'arch': 'nano',
    'img_size': SIDE,
    'patch_size': 16,
    'out_type': 'cls_token',
}
MVIT = {'type': 'mmvit_ext.ReMViTv2', 'arch': 'nano'}
SGD = {'optimizer': {'type': 'SGD', 'lr': 0.05, 'momentum': 0.9, 'weight_decay': 0.01}}
ADAMW = {'optimizer': {'type': 'AdamW', 'lr': 1e-3, 'weight_decay': 0.05, 'eps': 1e-4}}
KEYS = {'alpha': {'decay_mult': 0.0}, 'blocks.1.attn': {'lr_mult': 0.2}}
NORMS = {'paramwise_cfg': {'norm_decay_mult': 0.0, 'custom_keys': KEYS}}
LAYERS = {
    'constructor': 'mmvit_ext.LayerDecayOptimWrapperConstructor',
    'paramwise_cfg': {'layer_decay_rate': 0.6, 'norm_decay_mult': 0.0},
}
CLIP = {'clip_grad': {'max_norm': 0.05}}
# case: strategy, backbone, optim_wrapper
CASES = {
    'ddp-swin': ('ddp', SWIN, {**ADAMW, **NORMS}),
    'ddp-swin-cp': ('ddp', {**SWIN, 'with_cp': True}, SGD),
    'ddp-swin-frozen': ('ddp', {**SWIN, 'frozen_stages': 1}, {**ADAMW, **LAYERS}),
    'ddp-shift-clip': ('ddp', SHIFT, {**SGD, **CLIP}),
    'ddp-aug-accumulate': ('ddp', AUG, {**SGD, 'accumulative_counts': 2}),
    'fsdp-swin-clip': ('fsdp', SWIN, {**ADAMW, **NORMS, **CLIP}),
    'fsdp-swin-cp-layers': ('fsdp', {**SWIN, 'with_cp': True}, {**SGD, **LAYERS}),
    'fsdp-swin-frozen': ('fsdp', {**SWIN, 'frozen_stages': 1}, {**ADAMW, **LAYERS}),
    'fsdp-shift-resumed': ('fsdp', SHIFT, ADAMW),
    'fsdp-aug-accumulate': ('fsdp', AUG, {**SGD, 'accumulative_counts': 2}),
    'fsdp-mvit': ('fsdp', MVIT, SGD),
}
# cases of two epochs; several processes stop after the first one
RESUMED = ('fsdp-shift-resumed',)
DETECTION = 'ddp-mask-rcnn'


@DATASETS.register_module()
class NoiseWithLabels(Dataset):
    """Noise images, each with one of three classes."""

    def __len__(self):
        return STEPS * GLOBAL_BATCH

    def __getitem__(self, index):
        from mmpretrain.structures import DataSample

        generator = torch.Generator().manual_seed(index)
        image = torch.randint(256, (3, SIDE, SIDE), generator=generator, dtype=torch.uint8)
        return {'inputs': image, 'data_samples': DataSample().set_gt_label(index % 3)}


@DATASETS.register_module()
class NoiseWithObjects(Dataset):
    """Noise images; of two processes both get objects, then only the first, neither, and both."""

    objects = (1, 1, 1, 0, 0, 0, 1, 1)

    def __len__(self):
        return len(self.objects)

    def __getitem__(self, index):
        from mmdet.structures import DetDataSample
        from mmdet.structures.mask import BitmapMasks
        from mmengine.structures import InstanceData

        generator = torch.Generator().manual_seed(index)
        image = torch.randint(256, (3, SIDE, SIDE), generator=generator, dtype=torch.uint8)
        count = self.objects[index]
        masks = torch.zeros(count, SIDE, SIDE, dtype=torch.uint8)
        masks[:, 8:40, 16:48] = 1
        sample = DetDataSample(
            metainfo={key: (SIDE, SIDE) for key in ('img_shape', 'ori_shape', 'batch_input_shape')}
        )
        sample.gt_instances = InstanceData(
            bboxes=torch.tensor([[16.0, 8.0, 48.0, 40.0]] * count).view(-1, 4),
            labels=torch.zeros(count, dtype=torch.long),
            masks=BitmapMasks(masks.numpy(), SIDE, SIDE),
        )
        sample.ignored_instances = InstanceData(bboxes=torch.zeros(0, 4))
        return {'inputs': image, 'data_samples': sample}


def classifier(backbone):
    """A classifier on a backbone, without batch statistics or stochastic depth."""
    vector = 'out_type' in backbone
    last = {} if vector else {'out_indices': (3,)}
    return {
        'type': 'ImageClassifier',
        'data_preprocessor': {'num_classes': 3, 'mean': [127.5] * 3, 'std': [60.0] * 3},
        'backbone': {'drop_path_rate': 0.0, **last, **backbone},
        'neck': None if vector else {'type': 'GlobalAveragePooling'},
        'head': {'type': 'LinearClsHead', 'num_classes': 3, 'in_channels': 96 if vector else 384},
    }


def detector():
    """Mask R-CNN on ReSwin-nano."""
    cfg = Config.fromfile(BASE.parent / 'mask_rcnn_reswin_t_coco.py')
    cfg.merge_from_dict(
        {
            'model.backbone.arch': 'nano',
            'model.backbone.alpha_mode': 'shared',
            'model.neck.in_channels': [48, 96, 192, 384],
            'model.roi_head.bbox_head.fc_out_channels': 64,
            'model.train_cfg.rpn_proposal.max_per_img': 50,
            'model.train_cfg.rcnn.sampler.num': 16,
        }
    )
    return cfg.model


def settings(case, folder, processes):
    """The config of a case; with one process the batch is as large as that of all together."""
    strategy, backbone, optim_wrapper = CASES[case]
    if processes == 1:
        optim_wrapper = {**optim_wrapper, 'accumulative_counts': 1}
    batch_size = GLOBAL_BATCH // processes // optim_wrapper.get('accumulative_counts', 1)
    cfg = Config.fromfile(BASE / 'runtime_cls.py')
    cfg.model = classifier(backbone)
    cfg.train_dataloader = loader('NoiseWithLabels', batch_size)
    cfg.optim_wrapper = {'type': 'OptimWrapper', **optim_wrapper}
    cfg.load_from = f'{folder}/{case}.pth'
    cfg.merge_from_dict(_run(strategy if processes > 1 else None, f'{folder}/{case}_{processes}'))
    cfg.train_cfg.max_epochs = 1 + (case in RESUMED)
    return cfg


def detection_settings(folder):
    """The config of Mask R-CNN, one image a process."""
    cfg = Config.fromfile(BASE / 'runtime_det.py')
    cfg.model = detector()
    cfg.train_dataloader = loader('NoiseWithObjects', 1)
    cfg.optim_wrapper = {'type': 'OptimWrapper', **SGD}
    cfg.merge_from_dict(_run('ddp', f'{folder}/{DETECTION}'))
    return cfg


def _run(strategy, work_dir):
    """What every run has: a strategy of the configs, one epoch, names of its own."""
    cfg = Config.fromfile(BASE / 'strategies' / f'{strategy}.py').to_dict() if strategy else {}
    return {
        **cfg,
        'train_cfg': {'by_epoch': True, 'max_epochs': 1},
        'work_dir': work_dir,
        # two runs may start in the same second
        'experiment_name': Path(work_dir).name,
    }


def loader(dataset, batch_size):
    return {
        'batch_size': batch_size,
        'num_workers': 0,
        'sampler': {'type': 'DefaultSampler', 'shuffle': False},
        'dataset': {'type': dataset},
    }


class Losses(Hook):
    """Notes the loss of each iteration, averaged over the processes."""

    def __init__(self):
        self.seen = []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        loss = outputs['loss'].detach().clone()
        if dist.is_initialized():
            dist.all_reduce(loss)
            loss /= dist.get_world_size()
        self.seen.append(loss.item())


def train(cfg, launcher):
    """Trains; returns the losses, the weights (None if sharded) and how many are held here."""
    cfg.launcher = launcher
    cfg.randomness = {'seed': 0}
    cfg.log_level = 'WARNING'
    cfg.merge_from_dict({'env_cfg.dist_cfg': {'backend': 'gloo', 'timeout': 60}})
    runner, losses = _build_runner(cfg), Losses()
    runner.register_hook(losses)
    runner.train()
    model = runner.model.module if is_model_wrapper(runner.model) else runner.model
    return {
        'losses': losses.seen,
        'weights': None if 'strategy' in cfg else model.state_dict(),
        'held': sum(p.numel() for p in runner.model.parameters()),
    }


def train_case(case, folder):
    """Trains a case as one of two processes."""
    if case == DETECTION:
        return train(detection_settings(folder), 'pytorch')
    cfg = settings(case, folder, 2)
    if case not in RESUMED:
        return train(cfg, 'pytorch')
    cfg.train_cfg.max_epochs = 1
    first = train(copy.deepcopy(cfg), 'pytorch')
    cfg.train_cfg.max_epochs = 2
    cfg.resume, cfg.load_from = True, f'{cfg.work_dir}/epoch_1.pth'
    cfg.experiment_name += '_resumed'
    second = train(cfg, 'pytorch')
    return {**second, 'losses': first['losses'] + second['losses']}


def save_start(case, folder):
    """Writes the weights that a case starts from."""
    torch.manual_seed(0)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(classifier(CASES[case][1]))
    model.init_weights()
    torch.save({'state_dict': model.state_dict()}, f'{folder}/{case}.pth')


if __name__ == '__main__':
    torch.set_num_threads(1)
    folder, *cases = sys.argv[1:]
    for case in cases:
        result = train_case(case, folder)
        rank = dist.get_rank()
        torch.save(result, f'{folder}/{case}_{rank}.pth')
    del result
    leave_cpu()
    threads = [file.read_text().strip() for file in Path('/proc/self/task').glob('*/comm')]
    Path(folder, f'threads_{rank}.txt').write_text(' '.join(threads))
