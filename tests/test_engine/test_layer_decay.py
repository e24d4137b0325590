"""Layer-wise learning rates, by hand and against mmengine's and mmpretrain's constructors."""

from pathlib import Path

import pytest
import torch
import torch.nn as nn
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.optim import CosineAnnealingLR, build_optim_wrapper
from mmengine.registry import MODELS, DefaultScope

from mmvit_ext.models import AugViT, ReMViTv2, ReSwin, ReViT, ShiftViT

LR, RATE = 1e-3, 0.5
ROOT = Path(__file__).parents[2]
DEMO = {
    'mmpretrain': 'configs/demo/reswin-nano_digits-cls.py',
    'mmdet': 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py',
    'mmseg': 'configs/demo/upernet_reswin-nano_digits.py',
}


def wrapper(model, constructor='mmvit_ext.LayerDecayOptimWrapperConstructor', **paramwise):
    cfg = {
        'type': 'OptimWrapper',
        'constructor': constructor,
        'optimizer': {'type': 'AdamW', 'lr': LR, 'weight_decay': 0.05},
        'paramwise_cfg': paramwise,
    }
    return build_optim_wrapper(model, cfg)


def settings(model, optim_wrapper):
    """Learning rate and weight decay of each parameter by name."""
    names = {id(p): n for n, p in model.named_parameters()}
    groups = optim_wrapper.optimizer.param_groups
    pairs = [
        (names[id(p)], (group['lr'], group['weight_decay']))
        for group in groups
        for p in group['params']
    ]
    assert len(pairs) == len(dict(pairs))
    return dict(pairs)


@pytest.fixture(params=DEMO)
def model(request):
    """A classifier, a detector and a segmentor on ReSwin-nano, (2, 2, 2, 2) blocks."""
    cfg = Config.fromfile(ROOT / DEMO[request.param])
    with DefaultScope.overwrite_default_scope(request.param):
        yield MODELS.build(cfg.model)


def test_rates_fall_from_head_to_patch_embedding(model):
    found = settings(model, wrapper(model, layer_decay_rate=RATE))
    assert found.keys() == {n for n, p in model.named_parameters() if p.requires_grad}
    # 8 blocks, the patch embedding and all behind: 10 layers
    expected = {
        'backbone.patch_embed.proj.weight': RATE**9,
        'backbone.stages.0.blocks.0.attn.qkv.weight': RATE**8,
        'backbone.stages.0.downsample.reduction.weight': RATE**7,
        'backbone.stages.3.blocks.1.mlp.fc2.bias': RATE,
        'backbone.norm3.weight': 1.0,
    }
    for name, scale in expected.items():
        assert found[name][0] == pytest.approx(LR * scale), name
    behind = [lr for name, (lr, _) in found.items() if not name.startswith('backbone.')]
    assert behind and all(lr == LR for lr in behind)


def test_custom_keys_and_norms_keep_their_meaning(model):
    keys = {'bias_table': {'decay_mult': 0.0}, 'stages.1': {'lr_mult': 0.1, 'decay_mult': 2.0}}
    found = settings(
        model, wrapper(model, layer_decay_rate=RATE, norm_decay_mult=0.0, custom_keys=keys)
    )
    assert found['backbone.stages.0.blocks.0.norm1.weight'][1] == 0
    table = found['backbone.stages.0.blocks.0.attn.relative_position_bias_table']
    assert table == (pytest.approx(LR * RATE**8), 0)
    weight = found['backbone.stages.1.blocks.1.mlp.fc1.weight']
    assert weight == (pytest.approx(0.1 * LR * RATE**5), pytest.approx(0.1))


def test_rate_of_one_equals_mmengine(model):
    paramwise = {'norm_decay_mult': 0.0, 'bias_lr_mult': 2.0, 'flat_decay_mult': 0.5}
    ours = settings(model, wrapper(model, decay_rate=1.0, **paramwise))
    theirs = settings(model, wrapper(model, 'DefaultOptimWrapperConstructor', **paramwise))
    assert ours == theirs


def test_equals_mmpretrain_where_both_apply():
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        arch = {'embed_dims': 24, 'depths': [1, 1, 2, 1], 'num_heads': [1, 2, 4, 8]}
        model = MODELS.build(
            {
                'type': 'ImageClassifier',
                'backbone': {'type': 'SwinTransformer', 'arch': arch},
                'neck': {'type': 'GlobalAveragePooling'},
                'head': {'type': 'LinearClsHead', 'num_classes': 3, 'in_channels': 192},
            }
        )
        paramwise = {'layer_decay_rate': 0.7, 'norm_decay_mult': 0.0, 'flat_decay_mult': 0.0}
        theirs = wrapper(model, 'LearningRateDecayOptimWrapperConstructor', **paramwise)
        ours, theirs = settings(model, wrapper(model, **paramwise)), settings(model, theirs)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert ours[name] == pytest.approx(theirs[name]), name


@pytest.mark.parametrize('backbone', [ShiftViT, ReSwin, ReMViTv2, ReViT, AugViT])
def test_bare_backbones_of_every_family(backbone):
    model = backbone('nano')
    found = settings(model, wrapper(model, layer_decay_rate=RATE))
    layers = model.get_layer_depth('patch_embed.proj.weight')[1]
    assert found['patch_embed.proj.weight'][0] == pytest.approx(LR * RATE ** (layers - 1))
    assert found['norm3.weight'][0] == LR


def test_wrapped_model_and_frozen_parameters():
    model = ReSwin('nano', frozen_stages=1)

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = model

    detector = Detector()
    found = settings(detector, wrapper(detector, layer_decay_rate=RATE))
    assert not any('stages.0.' in name or 'patch_embed' in name for name in found)
    assert found['backbone.stages.1.blocks.0.norm1.weight'][0] == pytest.approx(LR * RATE**6)


def test_groups_are_few_and_keep_their_ratio_under_a_schedule(model):
    optim_wrapper = wrapper(model, layer_decay_rate=RATE, norm_decay_mult=0.0)
    groups = optim_wrapper.optimizer.param_groups
    # two weight decays in each of ten layers
    assert len(groups) <= 20
    assert all(g['lr'] == pytest.approx(LR * g['lr_scale']) for g in groups)
    scheduler = CosineAnnealingLR(optim_wrapper, T_max=10, by_epoch=False)
    for group in groups:
        group['params'][0].grad = torch.zeros_like(group['params'][0])
    optim_wrapper.step()
    scheduler.step()
    top = max(g['lr'] for g in groups)
    assert top < LR and all(g['lr'] == pytest.approx(top * g['lr_scale']) for g in groups)


def test_keys_that_match_nothing_are_reported(caplog):
    logger = MMLogger.get_current_instance()
    logger.addHandler(caplog.handler)
    try:
        keys = {'absolute_pos': {'decay_mult': 0.0}, '.norm3': {'decay_mult': 0.0}}
        wrapper(ReSwin('nano'), layer_decay_rate=RATE, custom_keys=keys)
    finally:
        logger.removeHandler(caplog.handler)
    (line,) = [r.message for r in caplog.records if 'without effect' in r.message]
    assert 'absolute_pos' in line and 'norm3' not in line


@pytest.mark.parametrize(
    'paramwise, message',
    [
        ({}, 'give one layer_decay_rate.*found none'),
        ({'layer_decay_rate': 0.8, 'decay_rate': 0.7}, 'layer_decay_rate=0.8, decay_rate=0.7'),
        ({'layer_decay_rate': 1.5}, r'layer_decay_rate=1.5: give a rate in \(0, 1\]'),
        ({'decay_rate': 0}, 'decay_rate=0'),
    ],
)
def test_bad_rates(paramwise, message):
    with pytest.raises(ValueError, match=message):
        wrapper(ReSwin('nano'), **paramwise)


def test_model_that_tells_no_depth():
    with pytest.raises(ValueError, match='Linear has no get_layer_depth'):
        wrapper(nn.Linear(2, 2), layer_decay_rate=RATE)
