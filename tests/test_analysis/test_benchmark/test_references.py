"""The authors' way of computing gives what the package's networks give."""

import pytest
import torch

from mmvit_ext.analysis.benchmark.sources.reference import ReferenceAugViT, ReferenceShiftViT
from mmvit_ext.models import AugViT, ShiftViT
from mmvit_ext.testing import randomise


def agree(ours, theirs):
    return all(
        torch.allclose(a, b, rtol=1e-5, atol=1e-5) for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize('size', [(64, 64), (96, 160)])
def test_shiftvit(size):
    ours = randomise(ShiftViT('nano'))
    theirs = ReferenceShiftViT(48, (2, 2, 4, 2)).eval()
    # its parameters have the same names
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, *size)
    with torch.no_grad():
        assert agree(ours(x), theirs(x))


def test_shiftvit_is_that_of_the_paper():
    parameters = sum(p.numel() for p in ReferenceShiftViT().parameters())
    assert parameters == sum(p.numel() for p in ShiftViT('tiny').parameters())


def reference_key(key, value):
    """Names and values in the reference: each path of a shortcut is a module of its own."""
    if '.shortcut' not in key:
        yield key.replace('norm3.', 'norm.') if key.startswith('norm3.') else key, value
        return
    for path, part in enumerate(value.chunk(2)):
        yield key.replace('shortcut', 'paths').replace('projection', str(path)), part


@pytest.mark.parametrize('size', [(64, 64), (48, 80)])
def test_augvit(size):
    ours = randomise(AugViT('nano', img_size=64))
    theirs = ReferenceAugViT(96, depth=4, num_heads=3, img_size=64).eval()
    state = dict(pair for item in ours.state_dict().items() for pair in reference_key(*item))
    theirs.load_state_dict(state)
    x = torch.randn(2, 3, *size)
    with torch.no_grad():
        assert agree(ours(x), [theirs(x)])
