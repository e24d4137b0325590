"""Plain ViTs: timm's DeiT as the plain network, naive formulas for the two mechanisms."""

import pytest
import timm
import torch
import torch.nn.functional as F

from mmvit_ext.models import AugViT, ReViT
from mmvit_ext.models.convert import convert
from mmvit_ext.testing import randomise


def small_deit(**kwargs):
    """DeiT of timm at the size of ``nano``."""
    return randomise(
        timm.models.vision_transformer.VisionTransformer(
            img_size=64, embed_dim=96, depth=4, num_heads=3, num_classes=10, **kwargs
        )
    )


def test_without_paths_equals_timm_deit():
    theirs = small_deit()
    converted = convert(theirs.state_dict())
    ours = AugViT('nano', num_paths=0, img_size=64, out_type='cls_token').eval()
    ours.load_state_dict(converted.backbone, strict=True)
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        logits = F.linear(ours(x)[0], converted.head['fc.weight'], converted.head['fc.bias'])
        torch.testing.assert_close(logits, theirs(x), atol=1e-4, rtol=1e-4)


def test_alpha_one_equals_timm_vit_without_class_token():
    theirs = small_deit(class_token=False, global_pool='avg', fc_norm=False)
    converted = convert(theirs.state_dict())
    ours = ReViT('nano', alpha=1.0, alpha_mode='fixed', img_size=64, out_type='avg_featmap').eval()
    ours.load_state_dict(converted.backbone, strict=True)
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        logits = F.linear(ours(x)[0], converted.head['fc.weight'], converted.head['fc.bias'])
        torch.testing.assert_close(logits, theirs(x), atol=1e-4, rtol=1e-4)


def naive_tokens(model, image):
    """All blocks by their formulas, head by head; no shared code but the layers' weights."""
    patch = model.patch_size
    x = F.pad(image, (0, -image.shape[3] % patch, 0, -image.shape[2] % patch))
    conv = model.patch_embed.proj
    x = F.conv2d(x, conv.weight, conv.bias, stride=patch)
    x = x + F.interpolate(model.absolute_pos_embed, x.shape[2:], mode='bicubic')
    x = x.flatten(2).transpose(1, 2)
    if model.cls_token is not None:
        x = torch.cat([model.cls_token + model.cls_pos_embed, x], dim=1)
    previous = None
    for block in model.blocks:
        u = block.norm1(x)
        q, k, v = block.attn.qkv(u).chunk(3, dim=-1)
        d = q.shape[-1] // block.attn.num_heads
        outs, scores = [], []
        for head in range(block.attn.num_heads):
            part = slice(head * d, (head + 1) * d)
            s = q[..., part] @ k[..., part].transpose(1, 2) / d**0.5
            if previous is not None and model.residual.carries:
                alpha = float(model.residual.gate())
                s = alpha * s + (1 - alpha) * previous[head]
            scores.append(s)
            outs.append(s.softmax(-1) @ v[..., part])
        previous = scores
        x = naive_shortcut(block.shortcut1, x, u, block.attn.proj(torch.cat(outs, -1)))
        u = block.norm2(x)
        x = naive_shortcut(block.shortcut2, x, u, block.mlp(u))
    return x


def naive_shortcut(shortcut, z, u, out):
    total = z + out
    if shortcut.num_paths:
        for path in shortcut.projection(u).split(z.shape[-1], dim=-1):
            total = total + (F.gelu(path) if shortcut.num_paths > 1 else path)
    return total * (0.75 if shortcut.num_paths > 1 else 1)


@pytest.mark.parametrize(
    'make',
    [
        lambda: ReViT('nano', alpha=0.37, img_size=64),
        lambda: ReViT('nano', alpha=0.8, alpha_mode='fixed', img_size=(48, 80)),
        lambda: AugViT('nano', num_paths=2, img_size=64),
        lambda: AugViT('nano', num_paths=1, where='mlp', projection='linear', img_size=64),
    ],
)
def test_blocks_equal_their_formulas_on_a_map_that_is_not_square(make):
    model = randomise(make())
    image = torch.randn(1, 3, 50, 90)
    with torch.no_grad():
        expected = model.norm3(naive_tokens(model, image))[:, -4 * 6 :]
        ours = model(image)[0].flatten(2).transpose(1, 2)
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)


def test_outputs_are_views_of_the_same_tokens():
    models = {
        kind: randomise(AugViT('nano', out_type=kind))
        for kind in ('featmap', 'avg_featmap', 'cls_token')
    }
    for model in models.values():
        model.load_state_dict(models['featmap'].state_dict())
    x = torch.randn(2, 3, 40, 70)
    outs = {kind: model(x)[0] for kind, model in models.items()}
    assert outs['featmap'].shape == (2, 96, 3, 5)
    assert outs['cls_token'].shape == outs['avg_featmap'].shape == (2, 96)
    torch.testing.assert_close(outs['featmap'].mean(dim=(2, 3)), outs['avg_featmap'])


def test_position_table_of_another_size_is_resampled_on_load():
    source = randomise(ReViT('nano', img_size=64))
    target = ReViT('nano', img_size=(96, 128))
    target.load_state_dict(source.state_dict(), strict=True)
    expected = F.interpolate(source.absolute_pos_embed, (6, 8), mode='bicubic')
    torch.testing.assert_close(target.absolute_pos_embed, expected, atol=1e-5, rtol=1e-5)


def test_shared_gate_learns():
    model = ReViT('nano').train()
    model.init_weights()
    model(torch.randn(1, 3, 64, 64))[0].square().sum().backward()
    assert model.residual.alpha.grad.abs().item() > 0
    assert sum(n.endswith('alpha') for n, _ in model.named_parameters()) == 1
    own = ReViT('nano', alpha_mode='block')
    assert [n for n, _ in own.named_parameters() if n.endswith('alpha')] == [
        f'blocks.{i}.residual.alpha' for i in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    'make, message',
    [
        (lambda: ReViT('nano', out_type='cls_token'), "out_type='cls_token': choose from featmap"),
        (lambda: AugViT('nano', out_type='raw'), "out_type='raw'"),
        (lambda: ReViT('nano', num_heads=5), '96 channels do not divide into 5 heads'),
        (lambda: ReViT('nano', alpha=2), 'alpha=2'),
        (lambda: ReViT('nano', alpha_mode='layer'), "alpha_mode='layer'"),
        (lambda: ReViT('nano', img_size=(1, 2, 3)), 'img_size'),
        (lambda: AugViT('nano', num_blocks=7), 'num_blocks=7: 96 channels'),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()
