"""Layer-wise learning rates, by hand and against mmengine's and mmpretrain's constructors."""

import logging
from pathlib import Path

import pytest
import torch
import torch.nn as nn
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.optim import CosineAnnealingLR, LinearLR, build_optim_wrapper
from mmengine.registry import MODELS, DefaultScope
from mmpretrain.models import ImageClassifier

from mmvit_ext.models import AugViT, ReMViTv2, ReSwin, ReViT, ShiftViT

LR, RATE = 1e-3, 0.5
ROOT = Path(__file__).parents[2]
DEMO = {
    'mmpretrain': 'configs/demo/reswin-nano_digits-cls.py',
    'mmdet': 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py',
    'mmseg': 'configs/demo/upernet_reswin-nano_digits.py',
}


ADAMW = {'type': 'AdamW', 'lr': LR, 'weight_decay': 0.05}
OURS = 'mmvit_ext.LayerDecayOptimWrapperConstructor'


def wrapper(model, constructor=OURS, optimizer=ADAMW, **paramwise):
    cfg = {
        'type': 'OptimWrapper',
        'constructor': constructor,
        'optimizer': optimizer,
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


@pytest.fixture
def log(caplog):
    """What mmengine's current logger said."""
    MMLogger.get_current_instance().addHandler(caplog.handler)
    yield caplog
    MMLogger.get_current_instance().removeHandler(caplog.handler)


@pytest.fixture(params=DEMO)
def config(request):
    """The model of a classifier, a detector and a segmentor, under the scope of each."""
    with DefaultScope.overwrite_default_scope(request.param):
        yield Config.fromfile(ROOT / DEMO[request.param]).model


@pytest.fixture
def model(config):
    """Each of them on ReSwin-nano, (2, 2, 2, 2) blocks."""
    return MODELS.build(config)


def build_reswin():
    return ReSwin('nano', drop_path_rate=0.0)


class Detector(nn.Module):
    """A backbone and what follows it."""

    def __init__(self, backbone, *heads):
        super().__init__()
        self.backbone = backbone
        self.heads = nn.ModuleList(heads)


# shares of the learning rate, from 1 at layer num_layers - 1 down to 0.5 ** (num_layers - 1)
EXPECTED = {
    # 8 blocks, the patch embedding and all behind: 10 layers
    'ReSwin': {
        'patch_embed.proj.weight': 1 / 512,
        'stages.0.blocks.0.attn.qkv.weight': 1 / 256,
        'stages.0.downsample.reduction.weight': 1 / 128,
        'stages.2.blocks.0.norm2.bias': 1 / 16,
        'stages.3.blocks.1.mlp.fc2.bias': 1 / 2,
        'norm3.weight': 1,
    },
    # (2, 2, 4, 2) blocks: 12 layers
    'ShiftViT': {
        'patch_embed.proj.weight': 1 / 2048,
        'stages.0.blocks.0.mlp.fc1.weight': 1 / 1024,
        'stages.0.downsample.norm.bias': 1 / 512,
        'stages.2.blocks.3.norm.weight': 1 / 8,
        'stages.3.blocks.1.mlp.fc2.bias': 1 / 2,
        'norm3.weight': 1,
    },
}


@pytest.mark.parametrize('name', EXPECTED)
def test_rates_fall_from_head_to_patch_embedding(config, name):
    backbone = {'type': f'mmvit_ext.{name}', 'arch': 'nano'}
    if 'out_indices' in config.backbone:
        backbone['out_indices'] = config.backbone.out_indices
    config.backbone = backbone
    model = MODELS.build(config)
    found = settings(model, wrapper(model, layer_decay_rate=RATE))
    assert found.keys() == {n for n, p in model.named_parameters() if p.requires_grad}
    for key, scale in EXPECTED[name].items():
        assert found[f'backbone.{key}'][0] == pytest.approx(LR * scale, rel=1e-12), key
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
    keys = {'stages.2': {'lr_mult': 0.3, 'decay_mult': 0.1}, 'head': {'lr_mult': 10.0}}
    paramwise = {'norm_decay_mult': 0.0, 'bias_lr_mult': 2.0, 'flat_decay_mult': 0.5}
    paramwise['custom_keys'] = keys
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
        paramwise['custom_keys'] = {'bias_table': {'decay_mult': 0.0}, 'head': {'decay_mult': 3.0}}
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


def test_frozen_parameters_are_left_out():
    detector = Detector(ReSwin('nano', frozen_stages=1))
    found = settings(detector, wrapper(detector, layer_decay_rate=RATE))
    assert found.keys() == {n for n, p in detector.named_parameters() if p.requires_grad}
    assert not any('stages.0.' in name or 'patch_embed' in name for name in found)
    assert found['backbone.stages.1.blocks.0.norm1.weight'][0] == pytest.approx(LR * RATE**6)


def test_wrapped_model_has_the_rates_of_the_bare_one():
    detector = Detector(build_reswin(), nn.Linear(4, 4))
    bare = settings(detector, wrapper(detector, layer_decay_rate=RATE))
    wrapped = wrapper(nn.DataParallel(detector), layer_decay_rate=RATE)
    assert settings(detector, wrapped) == bare


def test_shared_parameters_are_optimized_once_or_refused():
    head = nn.Linear(4, 4)
    detector = Detector(build_reswin(), nn.Sequential(head), nn.Sequential(head))
    with pytest.raises(ValueError, match='heads.0.0.weight, heads.0.0.bias:.*bypass_duplicate'):
        wrapper(detector, layer_decay_rate=RATE)
    found = settings(detector, wrapper(detector, layer_decay_rate=RATE, bypass_duplicate=True))
    assert found.keys() == dict(detector.named_parameters()).keys()
    assert found['heads.0.0.weight'][0] == LR


def test_gate_that_all_blocks_share_needs_no_setting():
    model = ReSwin('nano', alpha_mode='shared')
    found = settings(model, wrapper(model, layer_decay_rate=RATE))
    assert found.keys() == dict(model.named_parameters()).keys()


def test_groups_are_few_and_keep_their_ratio_under_a_schedule(model):
    optim_wrapper = wrapper(model, layer_decay_rate=RATE, norm_decay_mult=0.0)
    groups = optim_wrapper.optimizer.param_groups
    # two weight decays in each of ten layers
    assert len(groups) <= 20
    scheduler = CosineAnnealingLR(optim_wrapper, T_max=10, by_epoch=False)
    optim_wrapper.step()
    scheduler.step()
    # (1 + cos(pi / 10)) / 2
    top = LR * 0.9755282581475768
    assert all(g['lr'] == pytest.approx(top * g['lr_scale']) for g in groups)


def test_equal_settings_share_a_group_in_the_order_of_the_model():
    model = build_reswin()
    # a multiplier of 1 is mmengine's default, spelled out
    groups = wrapper(model, layer_decay_rate=RATE, norm_decay_mult=1.0).optimizer.param_groups
    assert len(groups) == 10
    position = {id(p): i for i, p in enumerate(model.parameters())}
    order = [[position[id(p)] for p in group['params']] for group in groups]
    assert all(indices == sorted(indices) for indices in order)
    assert [indices[0] for indices in order] == sorted(indices[0] for indices in order)


def test_steps_move_weights_by_their_own_rates():
    model = build_reswin()
    optim_wrapper = wrapper(model, optimizer={'type': 'SGD', 'lr': LR}, layer_decay_rate=RATE)
    scheduler = LinearLR(optim_wrapper, start_factor=0.5, end=2, by_epoch=False)
    picked = {key: model.get_parameter(key) for key in EXPECTED['ReSwin']}
    for warmup in (0.5, 1.0):
        before = {key: p.detach().clone() for key, p in picked.items()}
        optim_wrapper.backward(sum(m.square().mean() for m in model(torch.randn(2, 3, 64, 64))))
        optim_wrapper.step()
        for key, p in picked.items():
            rate = warmup * LR * EXPECTED['ReSwin'][key]
            assert p.grad.abs().sum() > 0
            torch.testing.assert_close(p, before[key] - rate * p.grad, atol=1e-9, rtol=1e-6)
        optim_wrapper.zero_grad()
        scheduler.step()


@pytest.mark.parametrize(
    'key, prefix, has_effect',
    [
        ('absolute_pos', '', True),
        ('relative_pos', '', True),
        ('cls_token', '', False),
        # mmengine sees a dot only before parameters of the model itself
        ('.absolute_pos', '', True),
        ('.absolute_pos', 'backbone.', True),
        ('.norm3', '', False),
        ('.norm3', 'backbone.', True),
        ('.backbone', 'backbone.', False),
    ],
)
def test_keys_are_reported_if_they_have_no_effect(log, key, prefix, has_effect):
    backbone = ReSwin('nano', use_abs_pos_embed=True)
    model = Detector(backbone) if prefix else backbone
    optim_wrapper = wrapper(model, layer_decay_rate=RATE, custom_keys={key: {'decay_mult': 0.0}})
    decays = [decay for _, decay in settings(model, optim_wrapper).values()]
    assert (0 in decays) == has_effect
    lines = [r.getMessage() for r in log.records if 'without effect' in r.getMessage()]
    assert bool(lines) != has_effect and all(key in line for line in lines)


def test_keys_without_effect_fill_one_line(log):
    keys = {'foo': {'decay_mult': 0.0}, 'norm': {'decay_mult': 0.0}, 'bar': {'lr_mult': 0.1}}
    wrapper(build_reswin(), layer_decay_rate=RATE, custom_keys=keys)
    (record,) = [r for r in log.records if r.levelno == logging.WARNING]
    assert record.getMessage().startswith('paramwise_cfg.custom_keys: foo, bar: ')


@pytest.mark.parametrize(
    'paramwise, message',
    [
        ({}, 'give one layer_decay_rate.*found none'),
        ({'layer_decay_rate': 0.8, 'decay_rate': 0.7}, 'layer_decay_rate=0.8, decay_rate=0.7'),
        ({'layer_decay_rate': 1.5}, r'layer_decay_rate=1.5: give a rate in \(0, 1\]'),
        ({'decay_rate': 0}, 'decay_rate=0'),
        ({'decay_rate': None}, 'decay_rate=None: give a rate'),
        ({'layer_decay_rate': '0.8'}, "layer_decay_rate='0.8': give a rate"),
    ],
)
def test_bad_rates(paramwise, message):
    with pytest.raises(ValueError, match=message):
        wrapper(ReSwin('nano'), **paramwise)


def test_both_names_of_the_rate_may_agree():
    model = build_reswin()
    both = wrapper(model, layer_decay_rate=RATE, decay_rate=RATE)
    assert settings(model, both) == settings(model, wrapper(model, decay_rate=RATE))


def test_optimizer_without_a_rate():
    with pytest.raises(ValueError, match='optimizer.lr: missing'):
        wrapper(build_reswin(), optimizer={'type': 'AdamW'}, layer_decay_rate=RATE)


def test_model_that_tells_no_depth():
    with pytest.raises(ValueError, match='Linear has no get_layer_depth.*choose a backbone'):
        wrapper(nn.Linear(2, 2), layer_decay_rate=RATE)


def test_backbone_that_tells_no_depth_is_named_for_the_model():
    # the classifier has the method, and it cannot work without the backbone's
    classifier = ImageClassifier({'type': 'LeNet5'})
    with pytest.raises(ValueError, match='LeNet5 has no get_layer_depth'):
        wrapper(classifier, layer_decay_rate=RATE)
