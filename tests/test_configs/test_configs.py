"""Every shipped config parses, builds in full, and is right about channels and weight decay."""

import json
from functools import cache
from pathlib import Path

import pytest
import torch
import torch.nn as nn
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, DefaultScope

from mmvit_ext.engine.ablation_configs import ablation_configs
from mmvit_ext.engine.config import check_channels
from mmvit_ext.models.layers import BlockCirculant

CONFIGS = Path(__file__).parents[2] / 'configs'
FILES = sorted(CONFIGS.rglob('*.py'))
WHOLE = [f for f in FILES if '_base_' not in f.parts]
TABLES = ('pos_embed', 'rel_pos', 'relative_position_bias_table', 'cls_token', 'alpha')


def name(file):
    return str(file.relative_to(CONFIGS))


@cache
def config_and_model(file):
    """A config and its whole model, without memory."""
    cfg = Config.fromfile(file)
    with torch.device('meta'), DefaultScope.overwrite_default_scope(cfg.default_scope):
        return cfg, MODELS.build(cfg.model)


def test_there_are_configs():
    assert len(WHOLE) >= 130


def test_basenames_are_unique():
    stems = [f.stem for f in FILES]
    assert len(stems) == len(set(stems))


@pytest.mark.parametrize('file', [f for f in FILES if f not in WHOLE], ids=name)
def test_base_parses(file):
    assert len(Config.fromfile(file)) > 0


@pytest.mark.parametrize('file', WHOLE, ids=name)
def test_channels_fit(file):
    cfg, model = config_and_model(file)
    check_channels(cfg)
    channels = list(model.backbone.out_channels)
    necks = [p for p in (cfg.model.get('neck'), cfg.model.get('decode_head')) if p]
    lists = [p.in_channels for p in necks if isinstance(p.get('in_channels'), list)]
    if cfg.default_scope == 'mmpretrain':
        lists.append([cfg.model.head.in_channels])
    assert lists and lists[0] == channels
    if 'auxiliary_head' in cfg.model:
        aux = cfg.model.auxiliary_head
        assert aux.in_channels == channels[aux.in_index]


@pytest.mark.parametrize('file', WHOLE, ids=name)
def test_norms_tables_gates_and_circulant_weights_do_not_decay(file):
    cfg, model = config_and_model(file)
    groups = build_optim_wrapper(model, cfg.optim_wrapper).optimizer.param_groups
    decayed = {id(p) for g in groups if g['weight_decay'] for p in g['params']}
    free = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._BatchNorm, BlockCirculant)
    kept = set()
    for _, module in model.named_modules():
        if isinstance(module, free):
            kept.update(id(p) for p in module.parameters())
    kept.update(id(p) for n, p in model.named_parameters() if any(t in n for t in TABLES))
    assert not kept & decayed
    matrices = {id(p) for p in model.parameters() if p.ndim > 1}
    assert matrices - kept <= decayed and matrices & decayed


@pytest.mark.parametrize('file', WHOLE, ids=name)
def test_learning_rate_knows_its_batch_size(file):
    cfg, _ = config_and_model(file)
    loader_batch = cfg.train_dataloader.batch_size
    # e.g. 8xb2 in the name: 8 devices with 2 images each, which the learning rate is for
    parts = [part for part in file.stem.split('_') if 'xb' in part]
    if parts:
        devices, batch = parts[0].split('-')[0].split('xb')
        assert loader_batch == int(batch)
        expected = int(devices) * int(batch)
        assert cfg.auto_scale_lr.base_batch_size == expected
    else:
        assert cfg.auto_scale_lr.base_batch_size > 0


def test_ablations_are_those_of_the_table():
    folder = CONFIGS / 'ablations'
    texts = ablation_configs(json.loads((folder / 'table.json').read_text()))
    assert {f.stem: f.read_text() for f in folder.glob('*.py')} == texts
    assert len(texts) == 41


@pytest.mark.parametrize(
    ('stem', 'setting', 'value'),
    [
        ('shiftvit-t-tau1_8xb128_in1k', 'mlp_ratio', 1),
        ('shiftvit-t-tau3_8xb128_in1k', 'depths', [4, 5, 12, 4]),
        ('shiftvit-t-share25_8xb128_in1k', 'n_div', 16),
        ('shiftvit-t-pixels0_8xb128_in1k', 'shift_pixels', 0),
        ('shiftvit-t-90e-bn-relu-sgd_8xb128_in1k', 'act_cfg', {'type': 'ReLU'}),
        ('revit-b-alpha75_8xb64_flowers102', 'alpha', 0.75),
        ('augvit-s-paths3_8xb128_in1k', 'num_paths', 3),
        ('augvit-s-mlp_8xb128_in1k', 'where', 'mlp'),
        ('augvit-s-b8_8xb128_in1k', 'num_blocks', 8),
        ('augvit-s-dense-paths1_8xb128_in1k', 'projection', 'linear'),
    ],
)
def test_an_ablation_changes_what_its_name_says(stem, setting, value):
    cfg = Config.fromfile(CONFIGS / 'ablations' / f'{stem}.py')
    assert cfg.model.backbone[setting] == value


def test_taus_cost_the_same():
    """Multiply-adds of the blocks go with tau times their number, alike in all stages."""
    costs = []
    for folder, stem in (
        ('ablations', 'shiftvit-t-tau1'),
        ('shiftvit', 'shiftvit-t'),
        ('ablations', 'shiftvit-t-tau3'),
        ('shiftvit', 'shiftvit-r4-t'),
    ):
        _, model = config_and_model(CONFIGS / folder / f'{stem}_8xb128_in1k.py')
        stages = model.backbone.stages
        tau = stages[0].blocks[0].mlp.fc1.weight.shape[0] / 96
        costs.append(tau * sum(len(stage.blocks) for stage in stages))
    assert max(costs) / min(costs) < 1.02
