"""ReSwin and AugSwin: plain Swin against mmdet and timm, the mechanisms against naive loops."""

import weakref

import pytest
import timm
import torch
import torch.nn.functional as F
from mmdet.models.backbones import SwinTransformer
from mmengine.analysis import get_model_complexity_info
from mmengine.hub import get_config

from mmvit_ext.models import AugSwin, ReSwin
from mmvit_ext.models.backbones.swin import fit_windows
from mmvit_ext.models.convert import convert
from mmvit_ext.models.layers import window_partition
from mmvit_ext.registry import MODELS
from mmvit_ext.testing import randomise


@pytest.mark.parametrize(
    'size',
    [(250, 333), (225, 481), pytest.param((800, 1333), marks=pytest.mark.slow)],
)
def test_alpha_one_equals_mmdet_swin(size):
    theirs = randomise(SwinTransformer())
    ours = ReSwin('tiny', alpha=1.0).eval()
    ours.load_state_dict(convert(theirs.state_dict()).backbone, strict=True)
    x = torch.randn(1, 3, *size)
    with torch.no_grad():
        for a, b in zip(ours(x), theirs(x), strict=True):
            assert a.shape == b.shape
            assert (a - b).abs().max() <= 1e-4 * b.std()


def test_alpha_one_equals_timm_swin():
    theirs = randomise(timm.create_model('swin_tiny_patch4_window7_224'))
    converted = convert(theirs.state_dict())
    ours = ReSwin('tiny', alpha=1.0, out_indices=(3,)).eval()
    ours.load_state_dict(converted.backbone, strict=True)
    x = torch.randn(2, 3, 224, 224)
    with torch.no_grad():
        pooled = ours(x)[0].mean(dim=(2, 3))
        logits = F.linear(pooled, converted.head['fc.weight'], converted.head['fc.bias'])
        torch.testing.assert_close(logits, theirs(x), atol=1e-4, rtol=1e-4)


def naive_block(block, x, previous, alpha):
    """One block, window by window and head by head; ``previous`` is a list of score matrices."""
    attn = block.attn
    _, h, w, c = x.shape
    win, heads = attn.window, attn.num_heads
    u = F.pad(block.norm1(x), (0, 0, 0, -w % win, 0, -h % win))
    shift = block.shift if min(h, w) > win else 0
    u = torch.roll(u, (-shift, -shift), (1, 2))
    rows, columns = u.shape[1] // win, u.shape[2] // win
    place = torch.arange(rows * win)[:, None].ge(rows * win - shift).expand(-1, columns * win)
    region = 2 * place.int() + torch.arange(columns * win)[None].ge(columns * win - shift).int()
    out, scores = torch.zeros_like(u), []
    count = rows * columns * heads
    for i in range(rows):
        for j in range(columns):
            ys, xs = slice(i * win, (i + 1) * win), slice(j * win, (j + 1) * win)
            tokens = u[0, ys, xs].reshape(-1, c)
            q, k, v = attn.qkv(tokens).chunk(3, dim=-1)
            joined = []
            for head in range(heads):
                part = slice(head * c // heads, (head + 1) * c // heads)
                s = q[:, part] @ k[:, part].T * (c // heads) ** -0.5
                table = attn.relative_position_bias_table[:, head]
                s = s + table[attn.relative_position_index].view(win**2, win**2)
                if previous is not None:
                    source = len(scores) * len(previous) // count
                    s = alpha * s + (1 - alpha) * previous[source]
                scores.append(s)
                labels = region[ys, xs].reshape(-1)
                apart = (labels[:, None] != labels[None]).float() * -100
                joined.append((s + apart).softmax(-1) @ v[:, part])
            out[0, ys, xs] = attn.proj(torch.cat(joined, -1)).view(win, win, c)
    out = torch.roll(out, (shift, shift), (1, 2))[:, :h, :w]
    x = x + out
    return x + block.mlp(block.norm2(x)), scores


@pytest.mark.parametrize('cross_stage', ['nearest', 'reset'])
def test_residual_attention_equals_a_naive_loop(cross_stage):
    model = randomise(ReSwin('nano', alpha=0.37, cross_stage=cross_stage))
    image = torch.randn(1, 3, 93, 70)
    with torch.no_grad():
        outs = model(image)
        x, scores, expected = model.patch_embed(image), None, []
        for i, stage in enumerate(model.stages):
            scores = None if cross_stage == 'reset' else scores
            for block in stage.blocks:
                x, scores = naive_block(block, x, scores, 0.37)
            expected.append(getattr(model, f'norm{i}')(x).permute(0, 3, 1, 2))
            x = stage.downsample(x) if stage.downsample else x
    for ours, naive in zip(outs, expected, strict=True):
        torch.testing.assert_close(ours, naive, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize('source, target', [(192, 96), (7, 3), (3, 7), (5, 5), (27, 12)])
def test_windows_are_fitted_by_nearest_neighbour(source, target):
    carried = torch.randn(2, source, 4, 4)
    expected = torch.stack([carried[:, t * source // target] for t in range(target)], dim=1)
    assert torch.equal(fit_windows(carried, target), expected)


@pytest.mark.parametrize('mode', ['shared', 'block'])
@pytest.mark.parametrize('bounded', [False, True])
def test_learnable_alpha_starts_as_the_fixed_one(mode, bounded):
    fixed = randomise(ReSwin('nano', alpha=0.4))
    learnable = ReSwin('nano', alpha=0.4, alpha_mode=mode, alpha_bounded=bounded).eval()
    learnable.load_state_dict(fixed.state_dict(), strict=False)
    x = torch.randn(1, 3, 64, 80)
    for a, b in zip(learnable(x), fixed(x), strict=True):
        torch.testing.assert_close(a, b)


def test_number_of_alphas():
    def alphas(**kwargs):
        model = ReSwin('nano', **kwargs)
        return [n for n, _ in model.named_parameters() if n.endswith('alpha')]

    assert alphas() == []
    assert alphas(alpha_mode='shared') == ['residual.alpha']
    assert len(alphas(alpha_mode='block')) == 7  # the first block has nothing to mix
    assert len(alphas(alpha_mode='block', cross_stage='reset')) == 4


def test_scores_of_the_past_are_released():
    model, freed = ReSwin('nano'), []

    def watch(module, args, output):
        weakref.finalize(output[1], freed.append, 1)

    for stage in model.stages:
        for block in stage.blocks:
            block.register_forward_hook(watch)
    with torch.no_grad():
        outs = model(torch.randn(1, 3, 64, 64))
    assert len(freed) == 8 and len(outs) == 4


def test_one_window_across_a_side_is_not_shifted():
    model = randomise(ReSwin('nano', depths=(2, 2), num_heads=(3, 6), out_indices=(0,)))
    twin = randomise(ReSwin('nano', depths=(2, 2), num_heads=(3, 6), out_indices=(0,)))
    twin.load_state_dict(model.state_dict())
    twin.stages[0].blocks[1].shift = 0
    for size, same in (((28, 60), True), ((32, 60), False)):  # 7 and 8 tokens high
        x = torch.randn(1, 3, *size)
        assert torch.equal(model(x)[0], twin(x)[0]) == same


def test_window_partition_sees_the_tokens_of_a_window_together():
    model = randomise(ReSwin('nano', alpha=1.0, depths=(1, 1), num_heads=(3, 6), out_indices=(0,)))
    x = torch.randn(1, 3, 56, 56)
    changed = x.clone()
    changed[..., :28, :28] += 1  # the first of four windows
    a = window_partition(model(x)[0].permute(0, 2, 3, 1), 7)
    b = window_partition(model(changed)[0].permute(0, 2, 3, 1), 7)
    assert [torch.equal(i, j) for i, j in zip(a, b)] == [False, True, True, True]


def test_tables_of_another_window_and_image_are_resampled_on_load():
    source = randomise(ReSwin('nano', use_abs_pos_embed=True, pretrain_img_size=64))
    target = ReSwin('nano', use_abs_pos_embed=True, pretrain_img_size=(96, 128), window_size=5)
    target.load_state_dict(source.state_dict(), strict=True)
    name = 'stages.0.blocks.0.attn.relative_position_bias_table'
    grid = source.state_dict()[name].T.reshape(1, 3, 13, 13)
    expected = F.interpolate(grid, (9, 9), mode='bicubic')[0].flatten(1).T
    torch.testing.assert_close(target.state_dict()[name], expected, atol=1e-5, rtol=1e-5)
    expected = F.interpolate(source.absolute_pos_embed, (24, 32), mode='bicubic')
    torch.testing.assert_close(target.absolute_pos_embed, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('size', [(224, 224), (97, 61), (976, 128)])
def test_absolute_position_fits_any_size(size):
    model = ReSwin('nano', use_abs_pos_embed=True).eval()
    model.init_weights()
    assert all(o.isfinite().all() for o in model(torch.randn(1, 3, *size)))


@pytest.mark.parametrize('where', ['msa', 'mlp', 'both'])
def test_without_paths_augmented_swin_is_plain(where):
    plain = randomise(ReSwin('nano', alpha=1.0))
    model = AugSwin('nano', num_paths=0, where=where).eval()
    model.load_state_dict(plain.state_dict(), strict=True)
    x = torch.randn(1, 3, 93, 70)
    assert all(torch.equal(a, b) for a, b in zip(model(x), plain(x), strict=True))


def naive_shortcut(shortcut, z, u, out):
    """``3/4 (z + out + gelu(P_1 u + b_1) + gelu(P_2 u + b_2))`` with P_i written out."""
    c = z.shape[-1]
    weight, bias = shortcut.projection.weight, shortcut.projection.bias.split(c)
    k = weight.shape[-1]
    total = z + out
    for vectors, b in zip(weight.split(c // k), bias):
        matrix = torch.empty(c, c)
        for row in range(c):
            for column in range(c):
                vector = vectors[row // k, column // k]
                matrix[row, column] = vector[(row % k - column % k) % k]
        total = total + F.gelu(u @ matrix.T + b)
    return 0.75 * total


def test_augmented_block_equals_its_formula():
    model = randomise(AugSwin('nano', embed_dims=24, out_indices=(0,)))
    plain = ReSwin('nano', alpha=1.0, embed_dims=24, out_indices=(0,)).eval()
    plain.load_state_dict(model.state_dict(), strict=False)
    image = torch.randn(1, 3, 61, 50)
    with torch.no_grad():
        x = model.patch_embed(image)
        for block, twin in zip(model.stages[0].blocks, plain.stages[0].blocks):
            u = block.norm1(x)
            attention = twin.attend(u, None, None)[0]
            x = naive_shortcut(block.shortcut1, x, u, attention)
            u = block.norm2(x)
            x = naive_shortcut(block.shortcut2, x, u, block.mlp(u))
        expected = model.norm0(x).permute(0, 3, 1, 2)
        torch.testing.assert_close(model(image)[0], expected, atol=1e-4, rtol=1e-4)


def test_stochastic_depth_leaves_the_paths_alone():
    model = randomise(AugSwin('nano', drop_path_rate=0.999, out_indices=(0,))).train()
    block = model.stages[0].blocks[1]
    block.drop_path.drop_prob = 0.999999
    x = torch.randn(1, 5, 6, 48)
    u = block.norm1(x)
    after = block.shortcut1(x, u, torch.zeros_like(x))
    u = block.norm2(after)
    expected = block.shortcut2(after, u, torch.zeros_like(x))
    torch.testing.assert_close(block(x, None, None)[0], expected)


def test_config_of_mmdet_swin_needs_another_type_only():
    cfg = get_config('mmdet::swin/mask-rcnn_swin-t-p4-w7_fpn_1x_coco.py').model.backbone
    cfg.update(type='mmvit_ext.ReSwin', alpha=1.0, init_cfg=None)
    assert MODELS.build(cfg).out_channels == (96, 192, 384, 768)


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'alpha': 1.5}, 'alpha=1.5'),
        ({'depths': (2, 2)}, 'per-stage settings differ in length'),
        ({'alpha_mode': 'layer'}, "alpha_mode='layer': choose from fixed, shared, block"),
        ({'cross_stage': 'keep'}, "cross_stage='keep': choose from nearest, reset"),
        ({'num_heads': (5, 6, 12, 24)}, '48 channels do not divide into 5 heads'),
        ({'use_abs_pos_embed': True, 'pretrain_img_size': (1, 2, 3)}, 'pretrain_img_size'),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(ValueError, match=message):
        ReSwin('nano', **changes)


def test_flops_of_the_published_size():
    info = get_model_complexity_info(
        ReSwin('tiny').eval(), (3, 224, 224), show_table=False, show_arch=False
    )
    assert 0.95 < info['flops'] / 4.5e9 < 1.15
