"""Every shipped config parses, builds, and is right about channels and weight decay."""

from pathlib import Path

import pytest
import torch
import torch.nn as nn
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, DefaultScope

CONFIGS = Path(__file__).parents[2] / 'configs'
FILES = sorted(CONFIGS.rglob('*.py'))
WHOLE = [f for f in FILES if '_base_' not in f.parts]


def name(file):
    return str(file.relative_to(CONFIGS))


def test_there_are_configs():
    assert len(WHOLE) >= 7


def test_basenames_are_unique():
    stems = [f.stem for f in FILES]
    assert len(stems) == len(set(stems))


@pytest.mark.parametrize('file', FILES, ids=name)
def test_parses(file):
    assert len(Config.fromfile(file)) > 0


@pytest.mark.parametrize('file', WHOLE, ids=name)
def test_model_builds_and_channels_fit(file):
    cfg = Config.fromfile(file)
    with torch.device('meta'), DefaultScope.overwrite_default_scope(cfg.default_scope):
        model = MODELS.build(cfg.model)
    channels = list(model.backbone.out_channels)
    for part in (cfg.model.get('neck'), cfg.model.get('decode_head')):
        if part and isinstance(part.get('in_channels'), list):
            assert part.in_channels == channels
    if cfg.default_scope == 'mmpretrain':
        assert cfg.model.head.in_channels == channels[-1]


@pytest.mark.parametrize('file', WHOLE, ids=name)
def test_norms_tables_and_gates_do_not_decay(file):
    cfg = Config.fromfile(file)
    model = nn.Module()
    model.backbone = MODELS.build({**cfg.model.backbone, 'alpha_mode': 'shared'})
    groups = build_optim_wrapper(model, cfg.optim_wrapper).optimizer.param_groups
    decayed = {id(p) for g in groups if g['weight_decay'] for p in g['params']}
    norms = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm2d)
    for module_name, module in model.named_modules():
        if isinstance(module, norms):
            assert not any(id(p) in decayed for p in module.parameters()), module_name
    for parameter, p in model.named_parameters():
        if any(part in parameter for part in ('pos', 'bias_table', 'alpha')):
            assert id(p) not in decayed, parameter
        elif parameter.endswith('fc1.weight'):
            assert id(p) in decayed, parameter


@pytest.mark.parametrize('file', WHOLE, ids=name)
def test_learning_rate_knows_its_batch_size(file):
    assert Config.fromfile(file).auto_scale_lr.base_batch_size > 0


def test_published_recipe_of_the_front_door():
    cfg = Config.fromfile(CONFIGS / 'cascade_rcnn_reswin_t_coco.py')
    optimizer = cfg.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr, optimizer.weight_decay) == ('AdamW', 1e-4, 0.05)
    assert cfg.train_cfg.max_epochs == 36 and cfg.param_scheduler[1].milestones == [27, 33]
    assert cfg.auto_scale_lr.base_batch_size == 16 and cfg.train_dataloader.batch_size == 2
    resize = cfg.train_pipeline[2]
    sides = [side for side, longer in resize.scales]
    assert (min(sides), max(sides), {longer for _, longer in resize.scales}) == (480, 800, {1333})
    assert cfg.model.backbone.drop_path_rate == 0.2
    with torch.device('meta'), DefaultScope.overwrite_default_scope('mmdet'):
        millions = sum(p.numel() for p in MODELS.build(cfg.model).parameters()) / 1e6
    assert millions == pytest.approx(86, abs=0.5)
