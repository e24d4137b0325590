"""Strict initialisation from a checkpoint."""

import socket
from unittest import mock

import mmpretrain.models.backbones
import pytest
import timm
import torch
import torch.nn as nn
from mmdet.models.backbones import SwinTransformer
from mmengine.logging import MMLogger
from mmengine.model.weight_init import PretrainedInit
from mmengine.registry import MODELS

from mmvit_ext.models import AugViT, ReMViTv2, ReSwin, ReViT
from mmvit_ext.testing import randomise

NAMES = ['ReSwin', 'ShiftViT', 'ReMViTv2', 'AugSwin', 'ReViT', 'AugViT']


@pytest.fixture
def log(caplog):
    """What mmengine's current logger said."""
    MMLogger.get_current_instance().addHandler(caplog.handler)
    yield caplog
    MMLogger.get_current_instance().removeHandler(caplog.handler)


def initialised(name='ReSwin', seed=0, **cfg):
    """A nano backbone, or the one that ``cfg`` describes, with weights initialised."""
    torch.manual_seed(seed)
    model = MODELS.build({'type': f'mmvit_ext.{name}', 'arch': 'nano', **cfg})
    model.init_weights()
    return model


def saved(tmp_path, content):
    file = tmp_path / 'weights.pth'
    torch.save(content, file)
    return str(file)


def pretrained(file, **kwargs):
    return {'init_cfg': {'type': 'mmvit_ext.Pretrained', 'checkpoint': file, **kwargs}}


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('prefix', ['', 'backbone.', 'module.', 'module.backbone.'])
@pytest.mark.parametrize('type_', ['Pretrained', 'mmvit_ext.Pretrained'])
def test_own_weights_arrive_under_any_prefix(tmp_path, log, name, prefix, type_):
    source = initialised(name, seed=9)
    state = {prefix + k: v for k, v in source.state_dict().items()}
    file = saved(tmp_path, {'state_dict': state})
    model = initialised(name, init_cfg={'type': type_, 'checkpoint': file})
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), source.parameters()))
    count = len(list(model.parameters()))
    assert f'{count} of {count} loaded' in log.text and 'new:' not in log.text


def test_swin_of_mmpretrain_arrives_with_one_line(tmp_path, log):
    source = mmpretrain.models.backbones.SwinTransformer('tiny')
    for parameter in source.parameters():
        nn.init.normal_(parameter, std=0.1)
    file = saved(tmp_path, {'state_dict': source.state_dict()})
    model = initialised(arch='tiny', **pretrained(file))
    ours = model.stages[2].blocks[3].attn.qkv.weight
    assert torch.equal(ours, source.stages[2].blocks[3].attn.w_msa.qkv.weight)
    assert '171 of 177 loaded; new: norm0.weight, norm0.bias' in log.text
    assert 'attn_mask' not in log.text and 'position_index' not in log.text


def test_tables_of_another_window_are_resampled_silently(tmp_path, log):
    source = initialised(window_size=7)
    for name, parameter in source.named_parameters():
        if name.endswith('bias_table'):
            nn.init.constant_(parameter, 0.7)
    file = saved(tmp_path, {'state_dict': source.state_dict()})
    model = initialised(window_size=12, **pretrained(file))
    tables = [p for n, p in model.named_parameters() if n.endswith('bias_table')]
    assert tables and all(torch.allclose(t, torch.full_like(t, 0.7)) for t in tables)
    assert 'mismatch' not in log.text


@pytest.mark.parametrize('name', NAMES)
def test_weights_that_fit_nowhere_are_an_error(tmp_path, name):
    file = saved(tmp_path, {'state_dict': {'foo.weight': torch.zeros(3)}})
    with pytest.raises(ValueError, match='foo.weight.*wants .*patch_embed.proj.weight'):
        initialised(name, **pretrained(file))


def test_too_few_weights_are_an_error_that_names_both_sides(tmp_path):
    state = initialised().state_dict()
    part = {k: v for k, v in state.items() if not k.startswith('stages.3')}
    file = saved(tmp_path, {**part, 'extra.weight': torch.zeros(1)})
    with pytest.raises(ValueError, match='missing stages.3.*not used extra.weight.*min_match'):
        initialised(**pretrained(file))
    assert isinstance(initialised(**pretrained(file, min_match=0.1)), ReSwin)


def test_wrong_width_names_the_parameter_and_both_shapes(tmp_path):
    state = initialised(use_abs_pos_embed=True).state_dict()
    state['absolute_pos_embed'] = torch.zeros(1, 5, 56, 56)
    file = saved(tmp_path, state)
    with pytest.raises(ValueError, match=r'absolute_pos_embed.*\[1, 5, 56, 56\]'):
        initialised(use_abs_pos_embed=True, **pretrained(file))


def test_prefix_selects_a_part(tmp_path):
    source = initialised(seed=9)
    state = {f'teacher.{k}': v for k, v in source.state_dict().items()}
    file = saved(tmp_path, {**state, 'student.weight': torch.zeros(1)})
    model = initialised(**pretrained(file, prefix='teacher.'))
    assert torch.equal(model.norm3.weight, source.norm3.weight)
    with pytest.raises(ValueError, match="prefix='pupil.': no key starts with it"):
        initialised(**pretrained(file, prefix='pupil.'))


@pytest.mark.parametrize('name', NAMES)
def test_building_needs_neither_network_nor_file(name):
    url = 'https://example.invalid/w.pth'
    with mock.patch.object(socket, 'socket', None):
        model = MODELS.build(
            {'type': f'mmvit_ext.{name}', 'arch': 'nano', **pretrained(url)}
        ).eval()
        assert len(model(torch.randn(1, 3, 64, 64))) == len(model.out_indices)


def test_other_initialisers_work_beside_it():
    model = initialised(init_cfg={'type': 'Constant', 'layer': 'LayerNorm', 'val': 3.0})
    assert (model.norm0.weight == 3).all()


def test_own_scheme_is_the_authors():
    model = initialised()
    weight = model.stages[2].blocks[0].mlp.fc1.weight
    assert weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert (model.stages[2].blocks[0].mlp.fc1.bias == 0).all()
    assert model.stages[0].blocks[0].attn.relative_position_bias_table.std() > 0.01


@pytest.mark.parametrize(
    'name, std',
    # SPACH and MViT start convolutions as they start linear layers; Swin and DeiT leave them
    [('ShiftViT', 0.02), ('ReMViTv2', 0.02), ('ReSwin', 1 / 12), ('AugViT', 1 / 48)],
)
def test_convolutions_start_as_the_authors_do(name, std):
    conv = initialised(name).patch_embed.proj
    # torch's own start is uniform in +-1 / sqrt(fan_in)
    assert conv.weight.std().item() == pytest.approx(std, rel=0.06)


def test_circulant_paths_keep_their_own_start():
    weight = initialised('AugViT').blocks[0].shortcut1.projection.weight
    assert weight.std().item() == pytest.approx((96 * 3) ** -0.5, rel=0.05)


def test_tokens_and_tables_start_as_normal_ones():
    model = initialised('AugViT')
    for table in (model.cls_token, model.cls_pos_embed, model.absolute_pos_embed):
        assert 0.015 < table.std().item() < 0.025
    rel_pos = initialised('ReMViTv2').stages[0].blocks[0].attn.rel_pos_h
    assert 0.015 < rel_pos.std().item() < 0.025


# the plain network, and the one with a mechanism that begins as it
PLAIN = {
    'ReSwin': (lambda: ReSwin('nano', alpha=1.0), {'alpha_mode': 'shared'}),
    'ReSwin-block': (lambda: ReSwin('nano', alpha=1.0), {'alpha_mode': 'block'}),
    'AugSwin': (lambda: ReSwin('nano', alpha=1.0), {'scale': 1.0}),
    'ReMViTv2': (lambda: ReMViTv2('nano', alpha=1.0, alpha_mode='fixed'), {}),
    'ReViT': (lambda: ReViT('nano', alpha=1.0, alpha_mode='fixed'), {}),
    'AugViT': (lambda: AugViT('nano', num_paths=0), {'scale': 1.0, 'projection': 'linear'}),
}


@pytest.mark.parametrize('case', PLAIN)
def test_begins_as_the_plain_network(tmp_path, log, case):
    make, changes = PLAIN[case]
    plain = randomise(make())
    file = saved(tmp_path, {'state_dict': plain.state_dict()})
    name = case.split('-')[0]
    model = initialised(name, **changes, **pretrained(file, begin='plain')).eval()
    x = torch.randn(1, 3, 72, 104)
    for ours, theirs in zip(model(x), plain(x), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert 'begin=' not in log.text
    other = initialised(name, **changes, **pretrained(file)).eval()
    assert not torch.allclose(other(x)[-1], plain(x)[-1], atol=1e-3)
    assert "begin='plain' would start gates and augmented paths without effect" in log.text


def mmdet_swin():
    """Swin of mmdet at the size of our nano."""
    return SwinTransformer(embed_dims=48, depths=(2, 2, 2, 2))


def mmpretrain_mvit():
    """MViTv2 of mmpretrain at the size of our nano; more outputs would change its last one."""
    arch = {'embed_dims': 48, 'num_layers': 6, 'num_heads': 1, 'downscale_indices': [1, 3, 5]}
    return mmpretrain.models.backbones.MViT(arch, img_size=64)


class TimmViT(timm.models.vision_transformer.VisionTransformer):
    """ViT of timm at the size of our nano, which gives the patches' map as backbones do."""

    def __init__(self, class_token):
        size = {'img_size': 64, 'embed_dim': 96, 'depth': 4, 'num_heads': 3}
        super().__init__(**size, class_token=class_token, global_pool='token' * class_token)

    def forward(self, x):
        patches = self.forward_features(x)[:, self.num_prefix_tokens :]
        return (patches.transpose(1, 2).unflatten(2, (4, 4)),)


# networks of others, ours that begins as they are, and the image's side
FOREIGN = {
    # every map is larger than a window: mmdet shifts smaller ones, the authors do not
    'ReSwin': (mmdet_swin, {'alpha_mode': 'shared'}, 256),
    'AugSwin': (mmdet_swin, {'scale': 1.0}, 256),
    'ReMViTv2': (mmpretrain_mvit, {'img_size': 64, 'out_indices': (3,)}, 64),
    'ReViT': (lambda: TimmViT(class_token=False), {'img_size': 64}, 64),
    'AugViT': (lambda: TimmViT(class_token=True), {'img_size': 64, 'scale': 1.0}, 64),
}


@pytest.mark.parametrize('name', FOREIGN)
def test_begins_as_the_plain_network_of_others(tmp_path, name):
    make, changes, side = FOREIGN[name]
    plain = randomise(make())
    file = saved(tmp_path, {'state_dict': plain.state_dict()})
    model = initialised(name, **changes, **pretrained(file, begin='plain')).eval()
    other = initialised(name, **changes, **pretrained(file)).eval()
    x = torch.randn(1, 3, side, side)
    with torch.no_grad():
        expected = plain(x)
        for ours, theirs in zip(model(x), expected, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
        assert not torch.allclose(other(x)[-1], expected[-1], atol=1e-3)


def test_what_the_checkpoint_holds_is_not_reset(tmp_path):
    source = initialised(alpha=0.3, alpha_mode='shared')
    file = saved(tmp_path, source.state_dict())
    model = initialised(alpha_mode='shared', **pretrained(file, begin='plain'))
    assert model.residual.alpha.item() == pytest.approx(0.3)
    source = initialised('AugSwin', seed=9)
    file = saved(tmp_path, source.state_dict())
    model = initialised('AugSwin', **pretrained(file, begin='plain'))
    ours = model.stages[0].blocks[0].shortcut1.projection.weight
    assert torch.equal(ours, source.stages[0].blocks[0].shortcut1.projection.weight)


@pytest.mark.parametrize(
    'name, changes, message',
    [
        ('ReSwin', {}, "begin='plain': a fixed alpha=0.5 cannot begin.*alpha_mode='shared'"),
        ('ReSwin', {'alpha_mode': 'shared', 'alpha_bounded': True}, 'a bounded alpha=0.5'),
        ('AugSwin', {}, 'scale=0.75.*set scale=1'),
    ],
)
def test_what_cannot_begin_plain_says_what_to_change(tmp_path, name, changes, message):
    file = saved(tmp_path, ReSwin('nano', alpha=1.0).state_dict())
    with pytest.raises(ValueError, match=message):
        initialised(name, **changes, **pretrained(file, begin='plain'))
    with pytest.raises(ValueError, match="begin='zero': choose 'plain'"):
        initialised(name, **pretrained(file, begin='zero'))


def test_own_files_load_through_mmengines_initialiser(tmp_path):
    source = initialised('AugViT', seed=9)
    file = saved(tmp_path, {'state_dict': source.state_dict()})
    model = AugViT('nano')
    PretrainedInit(file)(model)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), source.parameters()))
