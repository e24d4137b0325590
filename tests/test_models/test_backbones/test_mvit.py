"""ReMViTv2: plain MViTv2 against mmpretrain, residual attention against a naive loop."""

import weakref

import pytest
import torch
import torch.nn.functional as F
from mmpretrain.models.backbones.mvit import MViT, resize_decomposed_rel_pos

from mmvit_ext.analysis.benchmark import Case
from mmvit_ext.analysis.benchmark.memory import memory_of
from mmvit_ext.models.backbones.mvit import (
    BlockPlan,
    PoolingAttention,
    ReMViTv2,
    max_pool,
    relative_rows,
)
from mmvit_ext.testing import randomise

TINY = (1, 2, 5, 2)


def from_mmpretrain(weights):
    """Their names in ours: blocks are counted within stages."""
    places = [f'stages.{s}.blocks.{b}.' for s, depth in enumerate(TINY) for b in range(depth)]
    renamed = {}
    for name, value in weights.items():
        parts = name.split('.', 2)
        ours = name.replace('patch_embed.projection', 'patch_embed.proj')
        renamed[places[int(parts[1])] + parts[2] if parts[0] == 'blocks' else ours] = value
    return renamed


@pytest.fixture(scope='module')
def twins():
    torch.manual_seed(0)
    theirs = randomise(MViT('tiny', out_scales=[3]))
    ours = randomise(ReMViTv2('tiny', alpha=1.0, alpha_mode='fixed'))
    missing, unexpected = ours.load_state_dict(from_mmpretrain(theirs.state_dict()), strict=False)
    assert unexpected == []
    assert {name.split('.')[0] for name in missing} == {'norm0', 'norm1', 'norm2'}
    return theirs, ours


@pytest.mark.parametrize('size', [(224, 224), (132, 97), (250, 333)])
def test_alpha_one_equals_mmpretrain_mvit(twins, size):
    theirs, ours = twins
    running = []
    # their norms feed the next stage when more maps are asked for, so the maps are hooked
    hooks = [
        theirs.blocks[i].register_forward_hook(lambda module, args, out: running.append(out))
        for i in (0, 2, 7, 9)
    ]
    x = torch.randn(1, 3, *size)
    with torch.no_grad():
        last, maps = theirs(x)[0], ours(x)
        assert last.shape == maps[3].shape
        assert (last - maps[3]).abs().max() <= 1e-4 * last.std()
        for i, (tokens, grid) in enumerate(running):
            # (N, L, C) -> (N, C, h, w)
            expected = getattr(ours, f'norm{i}')(tokens).transpose(1, 2).unflatten(2, grid)
            assert (maps[i] - expected).abs().max() <= 1e-4 * expected.std()
    for hook in hooks:
        hook.remove()


def test_number_of_parameters_of_the_authors():
    model = ReMViTv2('tiny', out_indices=(3,))
    count = sum(p.numel() for p in model.parameters()) + 768 * 1000 + 1000
    assert count == 24173321


@pytest.mark.parametrize(
    'queries, keys, rows', [(7, 7, 13), (5, 3, 111), (3, 5, 9), (1, 1, 27), (83, 21, 55)]
)
def test_relative_rows_are_those_of_mmpretrain(queries, keys, rows):
    table = torch.randn(rows, 4)
    expected = resize_decomposed_rel_pos(table, queries, keys)
    torch.testing.assert_close(relative_rows(table, queries, keys), expected)


@pytest.mark.parametrize('h, w', [(1, 1), (2, 5), (7, 4), (8, 8)])
def test_max_pool_equals_that_of_torch(h, w):
    x = torch.randn(2, h, w, 3, requires_grad=True)
    twin = x.detach().clone().requires_grad_()
    expected = F.max_pool2d(twin.permute(0, 3, 1, 2), 3, 2, 1).permute(0, 2, 3, 1)
    pooled = max_pool(x)
    assert torch.equal(pooled, expected)
    g = torch.randn(pooled.shape)
    pooled.backward(g)
    expected.backward(g)
    torch.testing.assert_close(x.grad, twin.grad)


def sources(source, target, i):
    """The source cells that target cell i of an axis takes the mean of."""
    if target > source:
        return [i * source // target]
    return range(i * source // target, -(-(i + 1) * source // target))


def naive_fit(scores, shape):
    """One head's scores, (qh, qw, kh, kw), axis by axis and cell by cell."""
    for axis, target in enumerate(shape):
        cells = [sources(scores.shape[axis], target, i) for i in range(target)]
        parts = [torch.stack([scores.select(axis, j) for j in js]).mean(0) for js in cells]
        scores = torch.stack(parts, axis)
    return scores


def naive_attention(attn, x, previous, alpha, carry_rel_pos, windows):
    """One image, (H, W, C); ``previous`` and the scores returned are [window][head] matrices."""
    heads = attn.num_heads
    q, k, v = attn.qkv(x).chunk(3, dim=-1)

    def pooled(y, pool, norm):
        split = [part.permute(2, 0, 1)[None] for part in y.chunk(heads, dim=-1)]
        return [norm(pool(part)[0].permute(1, 2, 0)) for part in split]

    q = pooled(q, attn.pool_q, attn.norm_q)
    k = pooled(k, attn.pool_k, attn.norm_k)
    v = pooled(v, attn.pool_v, attn.norm_v)
    wq, wk = windows
    wq = wq or max(q[0].shape[:2])
    wk = wk or max(k[0].shape[:2])
    rows, columns = -(-q[0].shape[0] // wq), -(-q[0].shape[1] // wq)
    if windows[0]:
        assert (rows, columns) == (-(-k[0].shape[0] // wk), -(-k[0].shape[1] // wk))
        q_padded, k, v = (
            [F.pad(m, (0, 0, 0, columns * s - m.shape[1], 0, rows * s - m.shape[0])) for m in maps]
            for maps, s in ((q, wq), (k, wk), (v, wk))
        )
    else:
        q_padded = q
    out = [torch.zeros_like(m) for m in q_padded]
    handed = []
    for i in range(rows):
        for j in range(columns):
            at_q = (slice(i * wq, (i + 1) * wq), slice(j * wq, (j + 1) * wq))
            at_k = (slice(i * wk, (i + 1) * wk), slice(j * wk, (j + 1) * wk))
            earlier = previous[len(handed)] if previous else None
            if earlier and len(earlier) != heads:
                earlier = [sum(earlier) / len(earlier)] * heads
            handed.append([])
            for head in range(heads):
                a, b, c = q_padded[head][at_q], k[head][at_k], v[head][at_k]
                s = torch.einsum('ijc,klc->ijkl', a, b) * a.shape[-1] ** -0.5
                if earlier:
                    s = alpha * s + (1 - alpha) * naive_fit(earlier[head], s.shape)
                near_h = resize_decomposed_rel_pos(attn.rel_pos_h, s.shape[0], s.shape[2])
                near_w = resize_decomposed_rel_pos(attn.rel_pos_w, s.shape[1], s.shape[3])
                logits = s + torch.einsum('ijc,ikc->ijk', a, near_h)[..., None]
                logits = logits + torch.einsum('ijc,jlc->ijl', a, near_w)[:, :, None]
                weights = logits.flatten(2).softmax(-1).view_as(logits)
                out[head][at_q] = torch.einsum('ijkl,klc->ijc', weights, c)
                handed[-1].append(logits if carry_rel_pos else s)
    h, w = q[0].shape[:2]
    joined = [o[:h, :w] + m for o, m in zip(out, q)]
    return attn.proj(torch.cat(joined, dim=-1)), handed


def naive_block(block, x, previous, alpha, carry_rel_pos, windows):
    u = block.norm1(x)
    out, handed = naive_attention(block.attn, u, previous, alpha, carry_rel_pos, windows)
    skip = x if block.proj is None else block.proj(u)
    if out.shape[:2] != skip.shape[:2]:
        skip = F.max_pool2d(skip.permute(2, 0, 1)[None], 3, 2, 1)[0].permute(1, 2, 0)
    x = skip + out
    return x + block.mlp(block.norm2(x)), handed


# windows of queries and keys of each block with window_size=8; (0, 0) is global
PLAN = {
    0: [[(0, 0)], [(0, 0)] * 2, [(0, 0)] * 3, [(0, 0)] * 2],
    8: [[(8, 2)], [(4, 4), (0, 0)], [(2, 4), (2, 2), (0, 0)], [(1, 2), (0, 0)]],
}


@pytest.mark.parametrize('carry_rel_pos', [True, False])
@pytest.mark.parametrize('window', [0, 8])
def test_residual_attention_equals_a_naive_loop(window, carry_rel_pos):
    torch.manual_seed(0)
    model = ReMViTv2(
        'nano',
        depths=(1, 2, 3, 2),
        alpha=0.37,
        img_size=(90, 64),
        carry_rel_pos=carry_rel_pos,
        window_size=window,
    )
    image = torch.randn(1, 3, 93, 70)
    expected = []
    with torch.no_grad():
        maps = randomise(model)(image)
        x, scores, before = model.patch_embed(image)[0], None, None
        for i, stage in enumerate(model.stages):
            for block, windows in zip(stage.blocks, PLAN[window][i], strict=True):
                scores = scores if before == bool(windows[0]) else None
                before = bool(windows[0])
                x, scores = naive_block(block, x, scores, 0.37, carry_rel_pos, windows)
            expected.append(getattr(model, f'norm{i}')(x).permute(2, 0, 1)[None])
    for ours, naive in zip(maps, expected, strict=True):
        torch.testing.assert_close(ours, naive, atol=1e-4, rtol=1e-4)


def test_keys_of_global_blocks_are_pooled_once_more_beside_windows():
    def strides(window):
        model = ReMViTv2('nano', depths=(1, 2, 2, 2), window_size=window)
        return [b.attn.pool_k.stride[0] for s in model.stages for b in s.blocks]

    assert strides(0) == [4, 2, 2, 1, 1, 1, 1]
    assert strides(8) == [4, 2, 4, 1, 2, 1, 1]


@pytest.mark.parametrize('stride_q, stride_kv', [(1, 4), (2, 2)])
def test_window_as_large_as_the_map_is_global_attention(stride_q, stride_kv):
    torch.manual_seed(0)
    attns = [
        randomise(PoolingAttention(BlockPlan(8, 16, 2, stride_q, stride_kv, w, (8, 8)), True, True))
        for w in (0, 8)
    ]
    attns[1].load_state_dict(attns[0].state_dict())
    x = torch.randn(2, 8, 8, 8)
    torch.testing.assert_close(attns[0](x)[0], attns[1](x)[0])
    # zeros beside a smaller map are keys too, as in detectron2
    assert not torch.allclose(attns[0](x[:, :6])[0], attns[1](x[:, :6])[0], atol=1e-3)


def test_wide_images_get_tables_of_their_own_sides():
    model = randomise(ReMViTv2('nano', img_size=(192, 640), use_abs_pos_embed=True))
    attn = model.stages[1].blocks[0].attn
    assert attn.rel_pos_h.shape == (47, 48) and attn.rel_pos_w.shape == (159, 48)
    assert model.absolute_pos_embed.shape == (1, 48, 48, 160)
    maps = model(torch.randn(1, 3, 192, 640))
    assert [m.shape[2:] for m in maps] == [(48, 160), (24, 80), (12, 40), (6, 20)]


def test_tables_of_another_image_are_resampled_on_load():
    source = randomise(ReMViTv2('nano', img_size=64))
    target = ReMViTv2('nano', img_size=(96, 64))
    target.load_state_dict(source.state_dict(), strict=True)
    table = source.stages[0].blocks[0].attn.rel_pos_h
    expected = F.interpolate(table.T[None], 47, mode='linear')[0].T
    attn = target.stages[0].blocks[0].attn
    torch.testing.assert_close(attn.rel_pos_h, expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(attn.rel_pos_w, source.stages[0].blocks[0].attn.rel_pos_w)


@pytest.mark.parametrize('carry_rel_pos', [True, False])
@pytest.mark.parametrize('window', [0, 8])
def test_gradients_are_those_of_finite_differences(window, carry_rel_pos):
    """In-place steps on the scores must not reach what autograd kept."""
    torch.manual_seed(0)
    settings = {'embed_dims': 4, 'depths': (2, 1), 'num_heads': 1, 'mlp_ratio': 1}
    model = ReMViTv2(
        settings, alpha=0.4, out_indices=1, carry_rel_pos=carry_rel_pos, window_size=window
    )
    model = randomise(model).double()
    x = torch.randn(1, 3, 22, 18, dtype=torch.float64, requires_grad=True)
    alpha = model.residual.alpha
    table = model.stages[0].blocks[0].attn.rel_pos_h

    def run(*_):
        return model(x)[0]

    assert torch.autograd.gradcheck(run, (x, alpha), atol=1e-5, fast_mode=True)
    run().square().sum().backward()
    assert alpha.grad.abs().item() > 0 and table.grad.abs().sum() > 0


def test_checkpointed_blocks_give_the_same_gradients():
    torch.manual_seed(0)
    model = randomise(ReMViTv2('nano', alpha_mode='block'))
    image, found = torch.randn(1, 3, 60, 75), []
    for with_cp in (False, True):
        model.with_cp = with_cp
        model.zero_grad()
        sum(m.square().sum() for m in model(image)).backward()
        found.append([p.grad.clone() for p in model.parameters()])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_number_of_alphas():
    def alphas(**kwargs):
        model = ReMViTv2('nano', **kwargs)
        return [n for n, _ in model.named_parameters() if n.endswith('alpha')]

    assert alphas() == ['residual.alpha']
    assert alphas(alpha_mode='fixed') == []
    assert len(alphas(alpha_mode='block')) == 5  # the first of six blocks has nothing to mix
    # nano, windows on: W | W G | W G | G; a chain lasts while blocks are of one kind
    assert alphas(alpha_mode='block', window_size=8) == [
        'stages.1.blocks.0.residual.alpha',
        'stages.3.blocks.0.residual.alpha',
    ]
    assert alphas(out_indices=(0,)) == []  # a single block is built


@pytest.mark.parametrize('alpha, handed_on', [(0.5, 5), (1.0, 0)])
def test_scores_of_the_past_are_released(alpha, handed_on):
    model, freed, most = ReMViTv2('nano', alpha=alpha, alpha_mode='fixed'), [], []

    def watch(module, args, output):
        if output[1] is not None:
            most.append(len(most) + 1 - len(freed))
            weakref.finalize(output[1].scores, freed.append, 1)

    for stage in model.stages:
        for block in stage.blocks:
            block.register_forward_hook(watch)
    with torch.no_grad():
        maps = model(torch.randn(1, 3, 64, 64))
    assert len(freed) == len(most) == handed_on and len(maps) == 4
    assert max(most, default=0) <= 2  # a block's own and the one before it


@pytest.mark.parametrize(
    'settings, said',
    [
        ({'arch': 'huge'}, "arch='huge'.*choose from nano"),
        ({'arch': {'embed_dims': 96}}, 'arch needs the keys'),
        ({'num_heads': 7}, 'num_heads=7; choose a multiple'),
        ({'depths': (1, 0, 2, 1)}, 'depths=.*one block or more'),
        ({'window_size': 12}, 'window_size=12.*multiple of 8'),
        ({'window_size': -8}, 'window_size=-8.*multiple of 8'),
        ({'alpha': 1.5}, 'alpha=1.5'),
        ({'alpha_mode': 'free'}, "alpha_mode='free'.*choose from"),
        ({'img_size': (224, 224, 3)}, r'\(224, 224, 3\): give a side'),
        ({'out_indices': (4,)}, 'out_indices'),
        ({'frozen_stages': 5}, 'frozen_stages=5'),
    ],
)
def test_bad_settings_are_named(settings, said):
    with pytest.raises(ValueError, match=said):
        ReMViTv2(**{'arch': 'nano', **settings})


def growth(settings, shape, mode):
    """Bytes that a step needs beside the model and its input, in a process of its own."""
    case = Case(shape, mode, 'float32')
    memory, reason = memory_of(f'mmvit_ext:ReMViTv2:{settings}', case, 'cpu', 1, False)
    assert reason is None, reason
    return memory.growth


@pytest.mark.slow
@pytest.mark.tools
@pytest.mark.parametrize('window, gibibytes', [(0, 1.25), (56, 0.75)])
def test_memory_at_detection_size(window, gibibytes):
    settings = f'arch=tiny,window_size={window}'
    assert growth(settings, (1, 3, 800, 1344), 'forward') < gibibytes * 2**30


@pytest.mark.slow
@pytest.mark.tools
def test_memory_of_factors_is_linear_in_pixels():
    """Four times the pixels; whole scores would need up to sixteen times as much."""
    settings = 'arch=nano,scores=factored'
    small, large = (growth(settings, (1, 3, side, side), 'train') for side in (256, 512))
    assert large < 4.4 * small
