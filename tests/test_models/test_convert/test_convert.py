"""Sources, wrappers and prefixes of foreign checkpoints."""

import mmpretrain.models.backbones
import pytest
import timm
import torch
import torch.nn.functional as F
from mmdet.models.backbones import SwinTransformer
from mmpretrain.models import build_classifier

from mmvit_ext.models import ReSwin, ShiftViT
from mmvit_ext.models.convert import convert


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


@pytest.mark.parametrize(
    'make, source',
    [
        (lambda: ReSwin('nano'), 'mmvit_ext'),
        (lambda: ShiftViT('nano'), 'mmvit_ext'),
        (lambda: timm.create_model('swin_tiny_patch4_window7_224'), 'timm Swin'),
        (SwinTransformer, 'OpenMMLab Swin'),
        (lambda: mmpretrain.models.backbones.SwinTransformer('tiny'), 'OpenMMLab Swin'),
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
        ({'foo.weight': torch.zeros(3)}, 'foo.weight.*known are mmvit_ext, SPACH ShiftViT'),
        ({}, 'the checkpoint holds nothing'),
        ({'epoch': 3}, 'the checkpoint holds epoch'),
    ],
)
def test_what_is_no_checkpoint_is_named(checkpoint, message):
    with pytest.raises(ValueError, match=message):
        convert(checkpoint)
