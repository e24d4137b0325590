"""Sources, wrappers and prefixes of foreign checkpoints."""

import mmpretrain.models.backbones
import pytest
import timm
import torch
import torch.nn.functional as F
from mmdet.models.backbones import SwinTransformer
from mmpretrain.models import build_classifier

from mmvit_ext.models import AugSwin, AugViT, ReMViTv2, ReSwin, ReViT, ShiftViT
from mmvit_ext.models.convert import convert
from mmvit_ext.testing import randomise


def nano_classifier():
    """A classifier of mmpretrain on ReSwin-nano."""
    return build_classifier(
        {
            'type': 'ImageClassifier',
            'backbone': {'type': 'mmvit_ext.ReSwin', 'arch': 'nano', 'out_indices': (3,)},
            'neck': {'type': 'GlobalAveragePooling'},
            'head': {'type': 'LinearClsHead', 'num_classes': 10, 'in_channels': 384},
        }
    )


MVIT = {'embed_dims': 48, 'num_layers': 6, 'num_heads': 1, 'downscale_indices': [1, 3, 5]}


def timm_mvit():
    """MViTv2 of timm at the size of our nano."""
    cfg = timm.models.mvitv2.MultiScaleVitCfg(embed_dim=48, depths=(1, 2, 2, 1), num_heads=1)
    return timm.models.mvitv2.MultiScaleVit(cfg, img_size=(64, 64), num_classes=10)


def mm_mvit(**kwargs):
    """MViT of mmpretrain at the size of our nano."""
    return mmpretrain.models.backbones.MViT(MVIT, img_size=64, **kwargs)


def timm_vit(**kwargs):
    """ViT of timm at the size of our nano."""
    return timm.models.vision_transformer.VisionTransformer(
        img_size=64, embed_dim=96, depth=4, num_heads=3, num_classes=10, **kwargs
    )


def mm_vit(**kwargs):
    """ViT of mmpretrain at the size of our nano, with the norms of DeiT."""
    arch = {'embed_dims': 96, 'num_layers': 4, 'num_heads': 3, 'feedforward_channels': 384}
    return mmpretrain.models.backbones.VisionTransformer(arch, img_size=64, **kwargs)


@pytest.mark.parametrize(
    'make, source',
    [
        (lambda: ReSwin('nano'), 'mmvit_ext'),
        (lambda: ShiftViT('nano'), 'mmvit_ext'),
        (lambda: AugSwin('nano'), 'mmvit_ext'),
        (lambda: ReMViTv2('nano'), 'mmvit_ext'),
        (lambda: ReViT('nano'), 'mmvit_ext'),
        (lambda: AugViT('nano'), 'mmvit_ext'),
        (lambda: timm.create_model('swin_tiny_patch4_window7_224'), 'timm Swin'),
        (SwinTransformer, 'OpenMMLab Swin'),
        (lambda: mmpretrain.models.backbones.SwinTransformer('tiny'), 'OpenMMLab Swin'),
        (lambda: timm_mvit(), 'timm MViTv2'),
        (lambda: mm_mvit(), 'OpenMMLab MViT'),
        (lambda: timm_vit(), 'ViT of timm or ReViT'),
        (lambda: mm_vit(), 'OpenMMLab ViT'),
    ],
)
def test_source_is_found_from_the_keys(make, source):
    assert convert(make().state_dict()).source == source


@pytest.mark.parametrize(
    'wrap',
    [
        lambda s: s,
        lambda s: {'state_dict': s, 'meta': {'epoch': 3}},
        lambda s: {'model': s, 'optimizer': {}},
        lambda s: {'model_state': s},
        lambda s: {'model_ema': s},
        lambda s: {'state_dict_ema': s},
        lambda s: {f'module.{k}': v for k, v in s.items()},
        lambda s: {f'backbone.{k}': v for k, v in s.items()},
        lambda s: {'state_dict': {f'module.backbone.{k}': v for k, v in s.items()}},
    ],
)
def test_wrappers_and_prefixes_come_off(wrap):
    state = ReSwin('nano').state_dict()
    converted = convert(wrap(state))
    assert converted.backbone.keys() == state.keys()
    assert all(torch.equal(converted.backbone[k], v) for k, v in state.items())
    assert converted.head == {}


def test_classifier_is_split_into_backbone_and_head():
    model = nano_classifier()
    converted = convert({'state_dict': model.state_dict()})
    assert converted.backbone.keys() == model.backbone.state_dict().keys()
    assert torch.equal(converted.head['fc.weight'], model.head.fc.weight)
    assert set(converted.head) == {'fc.weight', 'fc.bias'}


def test_other_parts_of_a_detector_are_left_out():
    state = {f'backbone.{k}': v for k, v in ReSwin('nano').state_dict().items()}
    converted = convert({**state, 'neck.lateral_convs.0.conv.weight': torch.zeros(1)})
    assert converted.head == {} and not any('neck' in k for k in converted.backbone)


def test_openmmlab_patch_merging_is_reordered():
    """Merging with converted weights equals unfolding with OpenMMLab's."""
    theirs = SwinTransformer(embed_dims=24)
    ours = ReSwin('tiny', embed_dims=24)
    ours.load_state_dict(convert(theirs.state_dict()).backbone)
    x = torch.randn(2, 6, 8, 24)
    merge = theirs.stages[0].downsample
    columns = F.unfold(x.permute(0, 3, 1, 2), kernel_size=2, stride=2).transpose(1, 2)
    expected = merge.reduction(merge.norm(columns)).view(2, 3, 4, 48)
    torch.testing.assert_close(ours.stages[0].downsample(x), expected, atol=1e-5, rtol=1e-5)


def test_absolute_embedding_of_tokens_becomes_a_grid():
    theirs = mmpretrain.models.backbones.SwinTransformer('tiny', use_abs_pos_embed=True)
    torch.nn.init.normal_(theirs.absolute_pos_embed)
    grid = convert(theirs.state_dict()).backbone['absolute_pos_embed']
    assert grid.shape == (1, 96, 56, 56)
    assert torch.equal(grid[0, :, 3, 5], theirs.absolute_pos_embed[0, 3 * 56 + 5])


@pytest.mark.parametrize(
    'checkpoint, message',
    [
        (
            {'foo.weight': torch.zeros(3)},
            'foo.weight.*known are MViT authors.*SPACH ShiftViT.*mmvit_ext',
        ),
        ({}, 'the checkpoint holds nothing'),
        ({'epoch': 3}, 'the checkpoint holds epoch'),
    ],
)
def test_what_is_no_checkpoint_is_named(checkpoint, message):
    with pytest.raises(ValueError, match=message):
        convert(checkpoint)


def logits(features, head):
    return F.linear(features, head['fc.weight'], head['fc.bias'])


def plain_mvit(**kwargs):
    return ReMViTv2('nano', alpha=1.0, alpha_mode='fixed', img_size=64, **kwargs).eval()


def test_mvit_of_timm_computes_the_same():
    theirs = randomise(timm_mvit())
    converted = convert(theirs.state_dict())
    ours = plain_mvit(out_indices=(3,))
    ours.load_state_dict(converted.backbone, strict=True)
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        found = logits(ours(x)[0].mean(dim=(2, 3)), converted.head)
        torch.testing.assert_close(found, theirs(x), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize('absolute', [False, True])
def test_mvit_of_mmpretrain_computes_the_same(absolute):
    theirs = randomise(mm_mvit(use_abs_pos_embed=absolute))
    ours = plain_mvit(out_indices=(3,), use_abs_pos_embed=absolute)
    ours.load_state_dict(convert({'state_dict': theirs.state_dict()}).backbone, strict=True)
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(ours(x)[0], theirs(x)[0], atol=1e-4, rtol=1e-4)


def test_vit_of_mmpretrain_computes_the_same():
    theirs = randomise(mm_vit())
    ours = AugViT('nano', num_paths=0, img_size=64, out_type='cls_token').eval()
    ours.load_state_dict(convert(theirs.state_dict()).backbone, strict=True)
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(ours(x)[0], theirs(x)[0], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize('final_norm, name, left', [(False, 'ln2', set()), (True, 'ln1', {'ln2'})])
def test_output_norm_of_mmpretrain_is_the_one_before_pooling(final_norm, name, left):
    theirs = randomise(mm_vit(out_type='avg_featmap', final_norm=final_norm))
    ours = convert(theirs.state_dict()).backbone
    assert torch.equal(ours['norm3.weight'], getattr(theirs, name).weight)
    # what finds no place is passed on, for the loader to report
    assert {key.split('.')[0] for key in ours if key.startswith('ln')} == left


def test_class_token_without_a_position():
    theirs = randomise(timm_vit(no_embed_class=True))
    converted = convert(theirs.state_dict())
    ours = AugViT('nano', num_paths=0, img_size=64, out_type='cls_token').eval()
    ours.load_state_dict(converted.backbone, strict=True)
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        found = logits(ours(x)[0], converted.head)
        torch.testing.assert_close(found, theirs(x), atol=1e-4, rtol=1e-4)


def test_layer_scale_is_refused():
    with pytest.raises(ValueError, match='blocks.0.ls1.gamma.*LayerScale'):
        convert(timm_vit(init_values=0.1).state_dict())


def test_distilled_deit_loses_its_second_token():
    theirs = timm.models.deit.VisionTransformerDistilled(
        img_size=64, embed_dim=96, depth=4, num_heads=3, num_classes=10
    )
    converted = convert(randomise(theirs).state_dict())
    AugViT('nano', num_paths=0, img_size=64).load_state_dict(converted.backbone, strict=True)
    assert torch.equal(converted.backbone['cls_pos_embed'], theirs.pos_embed[:, :1])
    grid = converted.backbone['absolute_pos_embed']
    assert torch.equal(grid[0, :, 1, 2], theirs.pos_embed[0, 2 + 4 + 2])
    assert torch.equal(converted.head['fc.weight'], theirs.head.weight)


def test_authors_mvit_without_alpha_is_plain():
    state = ReMViTv2('nano', alpha=1.0, alpha_mode='fixed').state_dict()
    starts = [0, 1, 3, 5]

    def flat(name):
        parts = name.split('.')
        if parts[0] != 'stages':
            return name.replace('norm3', 'norm')
        return '.'.join(['blocks', str(starts[int(parts[1])] + int(parts[3])), *parts[4:]])

    theirs = {
        flat(n): v for n, v in state.items() if n.split('.')[0] not in ('norm0', 'norm1', 'norm2')
    }
    converted = convert({'model_state': {**theirs, 'head.projection.weight': torch.ones(2, 3)}})
    assert converted.source == 'MViT authors' and converted.head['fc.weight'].shape == (2, 3)
    assert converted.backbone.keys() == {
        n for n in state if not n.startswith(('norm0', 'norm1', 'norm2'))
    }
    assert all(torch.equal(v, state[n]) for n, v in converted.backbone.items())
