"""The shortcut against its formula, path by path."""

import pytest
import torch
import torch.nn.functional as F

from mmvit_ext.models.layers import AugmentedShortcut, Shortcuts
from mmvit_ext.models.layers.circulant import BlockCirculant


def tokens():
    return [torch.randn(2, 5, 8) for _ in range(3)]


@pytest.mark.parametrize(
    'num_paths, act, scale', [(1, None, 1.0), (2, F.gelu, 0.75), (4, F.gelu, 0.75)]
)
@pytest.mark.parametrize('projection', ['linear', 'circulant'])
def test_sum_of_single_paths(num_paths, act, scale, projection):
    shortcut = AugmentedShortcut(8, num_paths, projection)
    z, u, out = tokens()
    expected = z + out
    for t in range(num_paths):
        part = slice(8 * t, 8 * (t + 1))
        if projection == 'linear':
            path = F.linear(u, shortcut.projection.weight[part], shortcut.projection.bias[part])
        else:
            single = BlockCirculant(8, 8, 2)
            rows = slice(4 * t, 4 * (t + 1))
            single.weight.data.copy_(shortcut.projection.weight[rows])
            single.bias.data.copy_(shortcut.projection.bias[part])
            path = single(u)
        expected = expected + (act(path) if act else path)
    torch.testing.assert_close(shortcut(z, u, out), scale * expected)


def test_without_paths_it_is_the_plain_shortcut():
    z, u, out = tokens()
    shortcut = AugmentedShortcut(8, 0)
    assert torch.equal(shortcut(z, u, out), z + out) and not list(shortcut.parameters())


def test_settings_override_the_authors():
    shortcut = AugmentedShortcut(8, 2, act='none', scale=0.5)
    z, u, out = tokens()
    a, b = shortcut.projection(u).chunk(2, dim=-1)
    torch.testing.assert_close(shortcut(z, u, out), 0.5 * (z + out + a + b))


def test_begins_plain_and_still_learns():
    z, u, out = tokens()
    shortcut = AugmentedShortcut(8, 2, scale=1.0)
    shortcut.begin_plain()
    result = shortcut(z, u, out)
    assert torch.equal(result, z + out)
    result.square().sum().backward()
    assert shortcut.projection.weight.grad.abs().sum() > 0
    with pytest.raises(ValueError, match='scale=0.75.*set scale=1'):
        AugmentedShortcut(8, 2).begin_plain()


@pytest.mark.parametrize('where, places', [('msa', (2, 0)), ('mlp', (0, 2)), ('both', (2, 2))])
def test_places(where, places):
    made = Shortcuts(2, where).make(8)
    assert tuple(s.num_paths for s in made) == places
    assert [s.scale for s in made] == [0.75 if paths else 1.0 for paths in places]


@pytest.mark.parametrize(
    'make, message',
    [
        (lambda: AugmentedShortcut(8, 5), 'num_paths=5'),
        (lambda: AugmentedShortcut(8, projection='fft'), "projection='fft': choose from circulant"),
        (lambda: AugmentedShortcut(8, num_blocks=3), 'num_blocks=3: 8 channels'),
        (lambda: Shortcuts(2, 'head'), "where='head': choose from msa, mlp, both"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()
