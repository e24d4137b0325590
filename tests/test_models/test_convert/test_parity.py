"""Authors' checkpoints, rebuilt from their keys, give the authors' outputs in our models.

The JSON files in ``tests/data/parity`` hold what the authors' code computed (CPU, float32, eval
mode) for weights that :func:`authors_weights` makes from the names alone.
"""

import json
import math
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from mmvit_ext.models import AugViT, ReMViTv2, ReSwin, ReViT, ShiftViT
from mmvit_ext.models.convert import convert

DATA = Path(__file__).parents[2] / 'data' / 'parity'
MODELS = {
    'shiftvit_r2_tiny': (ShiftViT, 'tiny', {}),
    'shiftvit_r2_small': (ShiftViT, 'small', {}),
    'shiftvit_r2_base': (ShiftViT, 'base', {}),
    'shiftvit_r4_tiny': (ShiftViT, 'r4-tiny', {}),
    'shiftvit_light_tiny': (ShiftViT, 'light-tiny', {}),
    'reswin_tiny_224': (ReSwin, 'tiny', {}),
    'remvitv2_tiny_224': (ReMViTv2, 'tiny', {}),
    'revit_base_224': (ReViT, 'base', {}),
    'augvit_small_linear': (AugViT, 'small', {'num_paths': 1, 'projection': 'linear'}),
    'augvit_small_linear2': (AugViT, 'small', {'num_paths': 2, 'projection': 'linear'}),
    'augvit_small_circulant': (AugViT, 'small', {'num_paths': 1}),
    'augvit_small_circulant2': (AugViT, 'small', {'num_paths': 2}),
}
TABLES = ('relative_position_bias_table', 'rel_pos_h', 'rel_pos_w', 'pos_embed', 'cls_token')


def authors_tensor(name: str, shape: list[int]) -> torch.Tensor:
    """The made-up value of a parameter: a function of its name in the authors' code."""
    if name == 'alpha':
        return torch.full(shape, 0.37)
    rng = np.random.RandomState(zlib.crc32(name.encode()) & 0xFFFFFFFF)
    x = rng.standard_normal(tuple(shape))
    table = any(key in name for key in TABLES)
    if len(shape) >= 2 and not table:
        x = x / math.sqrt(int(np.prod(shape[1:])))
    elif len(shape) >= 2:
        x = 0.2 * x
    elif name.endswith('.weight'):
        x = 1 + 0.1 * x
    else:
        x = 0.1 * x
    return torch.tensor(x, dtype=torch.float32)


def authors_weights(reference: dict) -> dict[str, torch.Tensor]:
    """The checkpoint in the authors' keys; buffers hold zeros, they are never loaded."""
    return {
        name: authors_tensor(name, shape) if kind == 'param' else torch.zeros(shape)
        for name, (shape, kind) in reference['state_dict'].items()
    }


def blocks_of(model) -> dict[str, torch.nn.Module]:
    """The blocks by the names of the taps: ``blockN``, and ``stageN`` for a stage's last one."""
    if model.units == 'blocks':
        return {f'block{i}': block for i, block in enumerate(model.blocks)}
    last = {f'stage{i}': stage.blocks[-1] for i, stage in enumerate(model.stages)}
    flat = [block for stage in model.stages for block in stage.blocks]
    return {**last, **{f'block{i}': block for i, block in enumerate(flat)}}


def pooled(model, image: torch.Tensor) -> torch.Tensor:
    """What the authors' classifier sees, (N, C)."""
    out = model(image)[-1]
    return out if out.ndim == 2 else out.mean(dim=(2, 3))


def taps_of(model, head: dict, image: torch.Tensor) -> dict[str, torch.Tensor]:
    """Outputs of blocks, (N, C, H, W) or (N, L, C) as the authors have it, and logits."""
    taps = {}

    def keep(name):
        def hook(module, args, output):
            # blocks with attention return (map, scores), the map channels last
            x = output[0] if isinstance(output, tuple) else output
            taps[name] = x.flatten(1, 2) if isinstance(output, tuple) and x.ndim == 4 else x

        return hook

    handles = [b.register_forward_hook(keep(name)) for name, b in blocks_of(model).items()]
    with torch.no_grad():
        taps['logits'] = F.linear(pooled(model, image), head['fc.weight'], head['fc.bias'])
    for handle in handles:
        handle.remove()
    return taps


@pytest.mark.parametrize('name', MODELS)
def test_outputs_and_parameter_count_of_the_authors(name):
    reference = json.loads((DATA / f'{name}.json').read_text())
    converted = convert(authors_weights(reference))
    backbone, arch, kwargs = MODELS[name]
    if backbone is AugViT:
        kwargs = {**kwargs, 'out_type': 'cls_token'}
    model = backbone(arch, out_indices=(-1,), **kwargs).eval()
    model.load_state_dict(converted.backbone, strict=True)

    count = sum(p.numel() for p in model.parameters())
    count += sum(p.numel() for p in converted.head.values())
    assert count == reference['n_params']

    for case in reference['cases']:
        rng = np.random.RandomState(case['seed'])
        image = torch.tensor(rng.standard_normal(case['input']), dtype=torch.float32)
        taps = taps_of(model, converted.head, image)
        for tap, expected in case['outputs'].items():
            ours = taps[tap]
            assert list(ours.shape) == expected['shape'], tap
            picked = ours.flatten()[expected['idx']].double()
            error = (picked - torch.tensor(expected['val']).double()).abs().max().item()
            assert error <= 1e-3 * expected['std'], (tap, error, expected['std'])
            assert ours.std().item() == pytest.approx(expected['std'], rel=1e-3), tap
            assert abs(ours.mean().item() - expected['mean']) <= 1e-3 * expected['std'], tap
