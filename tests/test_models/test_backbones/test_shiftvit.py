"""ShiftViT: architectures, ablation switches, and its block as written in the paper."""

import pytest
import torch
import torch.nn as nn

from mmvit_ext.models import ShiftViT

# arch: parameters in millions (backbone + 1000-class head) and depths, from PAPERS: the SPACH
# registry; small and base r2 and the tiny ones are also held by the parity tests, exactly
PUBLISHED = {
    'tiny': (28.57, (6, 8, 18, 6)),
    'small': (50.30, (10, 18, 36, 10)),
    'base': (89.03, (10, 18, 36, 10)),
    'light-tiny': (19.61, (2, 2, 6, 2)),
    'light-small': (33.80, (2, 2, 18, 2)),
    'light-base': (59.71, (2, 2, 18, 2)),
    'r4-tiny': (31.43, (2, 2, 12, 3)),
    'r4-small': (51.52, (2, 6, 24, 4)),
    'r4-base': (87.27, (4, 6, 22, 4)),
}


@pytest.mark.parametrize('arch', PUBLISHED)
def test_published_sizes(arch):
    millions, depths = PUBLISHED[arch]
    with torch.device('meta'):
        model = ShiftViT(arch, out_indices=(3,))
    head = model.out_channels[0] * 1000 + 1000
    count = sum(p.numel() for p in model.parameters()) + head
    assert count / 1e6 == pytest.approx(millions, abs=0.006)
    assert tuple(len(s.blocks) for s in model.stages) == depths


def test_all_published_archs_are_there():
    assert set(ShiftViT.arch_zoo) == {*PUBLISHED, 'nano'}


def test_block_follows_the_paper():
    block = ShiftViT('nano').stages[0].blocks[1].eval()
    x = torch.randn(2, 48, 5, 6)
    g = 48 // 12
    y = x.clone()
    y[:, :g] = torch.nn.functional.pad(x[:, :g, :, 1:], (0, 1))
    y[:, g : 2 * g] = torch.nn.functional.pad(x[:, g : 2 * g, :, :-1], (1, 0))
    y[:, 2 * g : 3 * g] = torch.nn.functional.pad(x[:, 2 * g : 3 * g, 1:], (0, 0, 0, 1))
    y[:, 3 * g : 4 * g] = torch.nn.functional.pad(x[:, 3 * g : 4 * g, :-1], (0, 0, 1, 0))
    # one group: mean and variance over channels and pixels of an image together
    mean = y.mean(dim=(1, 2, 3), keepdim=True)
    std = (y.var(dim=(1, 2, 3), unbiased=False, keepdim=True) + 1e-5).sqrt()
    expected = y + block.mlp((y - mean) / std)
    torch.testing.assert_close(block(x), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('pixels', [0, 1, 2])
def test_shift_pixels_reach_every_block(pixels):
    model = ShiftViT('nano', shift_pixels=pixels)
    assert {b.shift_pixels for s in model.stages for b in s.blocks} == {pixels}


def test_without_shift_pixels_do_not_mix_within_a_patch_grid():
    model = ShiftViT('nano', shift_pixels=0, norm_cfg={'type': 'BN'}).eval()
    x = torch.randn(1, 3, 64, 64)
    changed = x.clone()
    changed[..., 32:] += 1
    for a, b in zip(model(x), model(changed), strict=True):
        half = a.shape[3] // 2
        assert torch.equal(a[..., :half], b[..., :half])
        assert not torch.equal(a[..., half:], b[..., half:])


def test_ablation_norm_and_activation():
    model = ShiftViT('nano', norm_cfg={'type': 'BN'}, act_cfg={'type': 'ReLU'}, norm_eval=True)
    kinds = {type(m) for m in model.modules()}
    assert nn.BatchNorm2d in kinds and nn.GroupNorm not in kinds
    assert nn.ReLU in kinds and nn.GELU not in kinds
    model.train()
    assert all(not m.training for m in model.modules() if isinstance(m, nn.BatchNorm2d))


@pytest.mark.parametrize('n_div, share', [(20, 0.2), (16, 0.25), (12, 1 / 3), (8, 0.5)])
def test_shifted_share(n_div, share):
    model = ShiftViT('nano', embed_dims=240, n_div=n_div, depths=(1, 1, 1, 1))
    assert 4 * model.stages[0].blocks[0].group / 240 == pytest.approx(share)


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'n_div': 3}, 'n_div=3'),
        ({'n_div': 49}, 'n_div=49'),
        ({'shift_pixels': -1}, 'shift_pixels=-1'),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(ValueError, match=message):
        ShiftViT('nano', **changes)
