"""Models of all sources take images of any size and give tuples; wrong names are told."""

import sys

import pytest
import torch

from mmvit_ext.analysis.benchmark.sources import SOURCES, build
from mmvit_ext.analysis.benchmark.spec import parse_spec
from mmvit_ext.errors import UsageError

# shapes of the outputs for an image of 64 x 96 pixels
SHAPES = {
    'mmvit_ext:ShiftViT:arch=nano,out_indices=(2,3)': [(1, 192, 4, 6), (1, 384, 2, 3)],
    'mmvit_ext:ReViT:arch=nano': [(1, 96, 4, 6)],
    'mmvit_ext:AugViT:arch=nano,out_type=cls_token': [(1, 96)],
    'mmdet:ResNet:depth=18,out_indices=(1,)': [(1, 128, 8, 12)],
    'mmpretrain:ResNet:depth=18,out_indices=(0,3)': [(1, 64, 16, 24), (1, 512, 2, 3)],
    'timm:swin_tiny_patch4_window7_224:embed_dim=24,depths=(1,1,1,1),num_heads=(1,1,1,1)': [
        (1, 16, 24, 24),
        (1, 8, 12, 48),
        (1, 4, 6, 96),
        (1, 2, 3, 192),
    ],
    'timm:vit_tiny_patch16_224:depth=1': [(1, 1 + 4 * 6, 192)],
    'torchvision:swin_t': [(1, 768, 2, 3)],
    'torchvision:resnet18': [(1, 1000)],
    'reference:ShiftViT-nano': [
        (1, 48, 16, 24),
        (1, 96, 8, 12),
        (1, 192, 4, 6),
        (1, 384, 2, 3),
    ],
    'reference:AugViT-nano:depth=1': [(1, 96, 4, 6)],
}


@pytest.mark.parametrize('text', SHAPES)
def test_outputs(text):
    model = build(parse_spec(text)).eval()
    with torch.no_grad():
        outputs = model(torch.rand(1, 3, 64, 96))
    assert isinstance(outputs, tuple)
    assert [tuple(output.shape) for output in outputs] == SHAPES[text]


def test_weights_are_the_same_each_time():
    first, second = (build(parse_spec('reference:ShiftViT-nano')) for _ in range(2))
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize(
    'text',
    [
        'mmvit_ext:ReSwin:arch=nano,drop_path_rate=0.9',
        'timm:vit_tiny_patch16_224:depth=2,drop_path_rate=0.9',
        'torchvision:swin_t',
    ],
)
def test_no_stochastic_depth(text):
    model = build(parse_spec(text)).train()
    x = torch.rand(4, 3, 32, 32)
    with torch.no_grad():
        assert all(torch.equal(a, b) for a, b in zip(model(x), model(x), strict=True))


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('mmvit:ReSwin', "no source 'mmvit'; give one of mmvit_ext, mmdet"),
        ('mmvit_ext:Reswin', 'did you mean .*ReSwin'),
        ('timm:swin_tiny', 'did you mean swin_tiny_patch4_window7_224'),
        ('torchvision:swin', 'did you mean .*swin_t,'),
        ('reference:ShiftViT', 'did you mean .*ShiftViT-T'),
        ('mmvit_ext:ReSwin:arch=huge', 'cannot be built .*choose from nano, tiny'),
        ('mmvit_ext:ReSwin:heads=3', "cannot be built .*'heads'"),
        ('timm:resnet18:heads=3', "cannot be built .*'heads'"),
    ],
)
def test_what_cannot_be_built_is_told(text, message):
    with pytest.raises(UsageError, match=message) as error:
        build(parse_spec(text))
    assert str(error.value).startswith(f'--models={text}: ')
    assert '\n' not in str(error.value)


def test_missing_package_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, 'timm', None)
    with pytest.raises(UsageError, match='timm.*install it, or leave the model out'):
        build(parse_spec('timm:resnet18'))


def test_every_source_has_names():
    assert all(source.names() for source in SOURCES.values())
