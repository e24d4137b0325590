"""What every backbone promises, checked on each family's nano architecture."""

import copy
import pickle

import pytest
import torch
import torch.nn as nn
from mmengine.registry import MODELS
from torch.utils._python_dispatch import TorchDispatchMode

FAMILIES = {
    'ShiftViT': {},
    'ReSwin': {},
    'ReSwin-shared': {'alpha_mode': 'shared'},
    'ReSwin-block-reset': {'alpha_mode': 'block', 'cross_stage': 'reset', 'alpha_bounded': True},
    'ReSwin-absolute': {'use_abs_pos_embed': True},
    'AugSwin': {},
    'AugSwin-linear': {'projection': 'linear', 'where': 'mlp', 'num_paths': 3},
    'ReMViTv2': {},
    'ReMViTv2-printed': {'carry_rel_pos': False, 'alpha_mode': 'block', 'use_abs_pos_embed': True},
    'ReMViTv2-windows': {'window_size': 8},
    'ReViT': {'out_indices': (0, 1, 2, 3)},
    'ReViT-mean': {'out_indices': (0, 1, 2, 3), 'out_type': 'avg_featmap', 'alpha_mode': 'block'},
    'AugViT': {'out_indices': (0, 1, 2, 3)},
    'AugViT-cls': {'out_indices': (0, 1, 2, 3), 'out_type': 'cls_token'},
}
# what gives one vector an image
VECTORS = ('ReViT-mean', 'AugViT-cls')
SIZES = [(1, 1), (4, 4), (5, 31), (33, 200), (97, 61), (112, 112)]


def build(family, train=False, **changes):
    """A seeded, initialised nano backbone of a family."""
    torch.manual_seed(0)
    name = family.split('-')[0]
    cfg = {'type': f'mmvit_ext.{name}', 'arch': 'nano', **FAMILIES[family], **changes}
    model = MODELS.build(cfg)
    model.init_weights()
    return model.train(train)


def image(h, w, n=1):
    """A fixed image of random pixels."""
    return torch.randn(n, 3, h, w, generator=torch.Generator().manual_seed(1))


def loss(outs):
    """A scalar that each output reaches; a plain sum is blind behind a norm."""
    g = torch.Generator().manual_seed(2)
    return sum((o.float() * torch.randn(o.shape, generator=g)).sum() for o in outs)


def units(model):
    """Stages of a pyramid, blocks of a plain transformer."""
    return getattr(model, model.units)


def gradients(model):
    return {n: p.grad for n, p in model.named_parameters() if p.requires_grad}


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


def test_sizes_are_rounded_up_and_finite(family):
    model = build(family)
    for h, w in SIZES:
        outs = model(image(h, w))
        assert isinstance(outs, tuple)
        for out, info in zip(outs, model.feature_info, strict=True):
            stride = info['reduction']
            grid = () if family in VECTORS else (-(-h // stride), -(-w // stride))
            assert out.shape == (1, info['num_chs'], *grid)
            assert out.is_contiguous() and out.isfinite().all()


def test_published_channels_are_those_of_the_maps(family):
    for indices in ((0, 1, 2, 3), (1, 3), (0,)):
        model = build(family, out_indices=indices)
        assert model.out_channels == tuple(o.shape[1] for o in model(image(32, 32)))


def test_last_map_does_not_depend_on_out_indices(family):
    full = build(family)
    for parameter in full.parameters():
        nn.init.normal_(parameter, std=0.5)
    last = build(family, out_indices=(3,))
    last.load_state_dict(full.state_dict(), strict=False)
    assert torch.equal(full(image(72, 104))[-1], last(image(72, 104))[0])


def test_nothing_of_one_size_leaks_into_another(family):
    model = build(family)
    before = model(image(48, 160))
    model(image(160, 48))
    assert all(torch.equal(a, b) for a, b in zip(before, model(image(48, 160)), strict=True))


def test_sample_does_not_depend_on_its_batch(family):
    model, batch = build(family), image(72, 104, 3)
    with torch.no_grad():
        for together, alone in zip(model(batch), model(batch[2:]), strict=True):
            torch.testing.assert_close(together[2:], alone, atol=1e-4, rtol=1e-4)


def test_train_and_eval_return_the_model(family):
    model = build(family)
    assert model.train() is model and model.training
    assert model.eval() is model and not model.training


@pytest.mark.parametrize('indices', [(0, 1, 2, 3), (0, 1), (3,), (0,)])
def test_every_trainable_parameter_has_a_gradient(family, indices):
    model = build(family, train=True, out_indices=indices)
    loss(model(image(64, 96))).backward()
    assert [n for n, g in gradients(model).items() if g is None] == []


@pytest.mark.parametrize('stages', [0, 1, 2, 4])
def test_frozen_from_construction_on(family, stages):
    model = MODELS.build({**_cfg(family), 'frozen_stages': stages})
    frozen = {n for n, p in model.named_parameters() if not p.requires_grad}
    expected = {n for n, _ in model.named_parameters() if _is_frozen(n, stages)}
    assert frozen == expected and frozen
    model.init_weights()
    model.train()
    assert not model.patch_embed.training
    assert all(s.training == (i >= stages) for i, s in enumerate(units(model)))
    outs = model(image(64, 96))
    if stages < 4:
        loss(outs).backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is None) == (name in frozen), name


def _cfg(family):
    return {'type': f'mmvit_ext.{family.split("-")[0]}', 'arch': 'nano', **FAMILIES[family]}


def _is_frozen(name, stages):
    """As mmdet means it: 0 the embedding, k also k stages and their output norms."""
    first = name.split('.')[0]
    if first in ('patch_embed', 'absolute_pos_embed', 'cls_token', 'cls_pos_embed'):
        return True
    if first == 'residual':
        return stages > 0
    if first in ('stages', 'blocks'):
        return int(name.split('.')[1]) < stages
    return int(first.removeprefix('norm')) < stages


def test_checkpointing_behind_frozen_stages_keeps_gradients(family):
    found = []
    for with_cp in (False, True):
        model = build(family, train=True, with_cp=with_cp, frozen_stages=1, drop_path_rate=0.0)
        loss(model(image(64, 96))).backward()
        found.append(gradients(model))
    for name, expected in found[0].items():
        torch.testing.assert_close(found[1][name], expected, atol=1e-4, rtol=1e-4)


def test_checkpointing_recomputes(family):
    calls = []
    model = build(family, train=True, with_cp=True)
    unit = units(model)[1]
    block = unit.blocks[0] if hasattr(unit, 'blocks') else unit
    block.register_forward_pre_hook(lambda *_: calls.append(1))
    loss(model(image(32, 32))).backward()
    assert len(calls) == 2


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_large_weights_stay_finite_in_half_precision(family, dtype):
    model = build(family)
    for name, parameter in model.named_parameters():
        if 'qkv.weight' in name:
            parameter.data *= 100
    with torch.autocast('cpu', dtype), torch.no_grad():
        assert all(o.isfinite().all() for o in model(image(72, 104)))


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float64])
def test_runs_in_the_dtype_of_its_weights(family, dtype):
    outs = build(family).to(dtype)(image(40, 56).to(dtype))
    assert all(o.dtype == dtype and o.isfinite().all() for o in outs)


def test_stochastic_depth_rises_and_rests_in_eval(family):
    model = build(family, drop_path_rate=0.4)
    rates = [m.drop_prob for m in model.modules() if hasattr(m, 'drop_prob')]
    expected = torch.linspace(0, 0.4, len(rates)).tolist()
    assert rates == pytest.approx(expected)
    x = image(64, 64, 4)
    assert all(torch.equal(a, b) for a, b in zip(model(x), model(x), strict=True))
    model.train()
    assert not torch.equal(model(x)[-1], model(x)[-1])


def test_copies_and_keeps_no_activation(family):
    model = build(family, train=True)
    model(image(64, 96))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert all(torch.equal(a, b) for a, b in zip(twin.parameters(), model.parameters()))
    held = [n for m in model.modules() for n, v in vars(m).items() if isinstance(v, torch.Tensor)]
    assert held == []


def test_same_seed_same_gradients_in_deterministic_mode(family):
    torch.use_deterministic_algorithms(True)
    try:
        runs = []
        for _ in range(2):
            model = build(family, train=True, drop_path_rate=0.2)
            torch.manual_seed(3)
            loss(model(image(72, 104))).backward()
            runs.append(gradients(model))
        assert all(torch.equal(runs[0][n], runs[1][n]) for n in runs[0])
    finally:
        torch.use_deterministic_algorithms(False)


class NoFloat64(TorchDispatchMode):
    """Fails on any operation that makes a float64 tensor, which MPS devices do not have."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        outputs = result if isinstance(result, tuple | list) else [result]
        assert all(getattr(o, 'dtype', None) != torch.float64 for o in outputs), func
        return result


def test_makes_no_float64(family):
    model = build(family)
    with NoFloat64():
        model(image(72, 104))


def test_layer_depth_rises_to_the_head(family):
    model = build(family)
    depths = {n: model.get_layer_depth(f'backbone.{n}', 'backbone.')[0] for n in model.state_dict()}
    blocks = sorted(n for n in depths if n.endswith('mlp.fc1.weight'))
    assert [depths[n] for n in blocks] == list(range(1, len(blocks) + 1))
    first = ('patch_embed', 'absolute_pos_embed', 'cls_')
    assert all(depths[n] == 0 for n in depths if n.startswith(first))
    # a downsampling layer counts with the block before it
    for i, unit in enumerate(units(model)):
        if getattr(unit, 'downsample', None) is not None:
            assert depths[f'stages.{i}.downsample.norm.weight'] == sum(model.depths[: i + 1])
    assert depths['norm3.weight'] == len(blocks) + 1
    behind = model.get_layer_depth('head.fc.weight', 'backbone.')
    assert behind == (len(blocks) + 1, len(blocks) + 2)


def test_gradient_reaches_the_image(family):
    x = image(40, 72).requires_grad_()
    loss(build(family)(x)).backward()
    assert x.grad.isfinite().all() and (x.grad.abs().sum(1) > 0).all()


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'arch': 'huge'}, "arch='huge' is unknown; choose from nano, tiny"),
        ({'arch': {'depths': (1, 1)}}, 'missing'),
        ({'out_indices': (0, 4)}, 'out_indices=.0, 4.*0..3'),
        ({'out_indices': (2, 1)}, 'ascending'),
        ({'out_indices': ()}, 'out_indices'),
        ({'frozen_stages': 5}, 'frozen_stages=5'),
    ],
)
def test_bad_arguments_name_field_and_remedy(family, changes, message):
    cfg = {'type': f'mmvit_ext.{family.split("-")[0]}', 'arch': 'nano', **changes}
    with pytest.raises(ValueError, match=message):
        MODELS.build(cfg)


def test_last_stage_by_negative_index(family):
    assert build(family, out_indices=(-1,)).out_indices == (3,)


@pytest.mark.slow
def test_onnx_export_of_a_size_that_nothing_divides(family, tmp_path):
    onnxruntime = pytest.importorskip('onnxruntime')
    model, x = build(family), image(200, 264)
    file = tmp_path / 'model.onnx'
    torch.onnx.export(model, (x,), str(file), dynamo=True, external_data=False, verbose=False)
    session = onnxruntime.InferenceSession(str(file))
    outs = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    for theirs, ours in zip(outs, model(x), strict=True):
        assert abs(theirs - ours.detach().numpy()).max() < 1e-3


@pytest.mark.slow
def test_compiled_equals_eager_at_two_sizes(family):
    model = build(family)
    compiled = torch.compile(model, backend='eager', dynamic=False)
    with torch.no_grad():
        for size in ((64, 64), (96, 104)):
            for a, b in zip(compiled(image(*size)), model(image(*size)), strict=True):
                torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize('memory_format', [torch.contiguous_format, torch.channels_last])
def test_gradients_have_the_strides_of_their_parameters(family, memory_format):
    """DDP copies those that have not, and warns."""
    model = build(family, train=True)
    loss(model(image(64, 96, n=2).contiguous(memory_format=memory_format))).backward()
    odd = [n for n, p in model.named_parameters() if p.grad.stride() != p.stride()]
    assert odd == []
