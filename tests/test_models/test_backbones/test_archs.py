"""Every architecture at its full size, on the meta device: shapes, gradients, freezing."""

import pytest
import torch

from mmvit_ext.models import AugSwin, AugViT, ReMViTv2, ReSwin, ReViT, ShiftViT

BACKBONES = (ShiftViT, ReSwin, AugSwin, ReMViTv2, ReViT, AugViT)
ARCHS = [(backbone, arch) for backbone in BACKBONES for arch in backbone.arch_zoo]
SIZES = [(224, 224), (1, 1), (97, 61), (320, 200), (640, 1000)]


def build(backbone, arch, **kwargs):
    with torch.device('meta'):
        return backbone(arch, **kwargs)


def image(h, w):
    return torch.empty(2, 3, h, w, device='meta')


@pytest.fixture(params=ARCHS, ids=lambda case: f'{case[0].__name__}-{case[1]}')
def case(request):
    return request.param


def test_shapes_of_five_sizes(case):
    model = build(*case).eval()
    infos = [model.feature_info[i] for i in model.out_indices]
    for h, w in SIZES:
        with torch.no_grad():
            outs = model(image(h, w))
        for out, info in zip(outs, infos, strict=True):
            stride = info['reduction']
            assert out.shape == (2, info['num_chs'], -(-h // stride), -(-w // stride))


def test_gradient_reaches_every_parameter_for_three_outputs(case):
    count = len(build(*case).feature_info)
    for indices in (tuple(range(count)), (0, 1), (count - 1,)):
        model = build(*case, out_indices=indices)
        sum(out.sum() for out in model(image(64, 96))).backward()
        assert [n for n, p in model.named_parameters() if p.grad is None] == []


def test_freezing_the_first_half(case):
    half = len(build(*case).feature_info) // 2
    model = build(*case, frozen_stages=half)
    units = getattr(model, model.units)
    for i, unit in enumerate(units):
        assert all(p.requires_grad == (i >= half) for p in unit.parameters())
        assert unit.training == (i >= half)
    assert not any(p.requires_grad for p in model.patch_embed.parameters())


def test_settings_of_an_architecture_as_a_dict_build_the_same(case):
    backbone, arch = case
    named, given = build(backbone, arch), build(backbone, dict(backbone.arch_zoo[arch]))
    shapes = [{k: v.shape for k, v in m.state_dict().items()} for m in (named, given)]
    assert shapes[0] == shapes[1]
