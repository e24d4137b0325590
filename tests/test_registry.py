"""Names work in every scope, from any folder, with little installed."""

import subprocess
import sys

import pytest
from mmengine.registry import MODELS as ROOT_MODELS

from mmvit_ext.registry import MODELS

BUILD = """
import mmvit_ext
from mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS, init_default_scope
init_default_scope('{scope}')
from {scope}.registry import MODELS
for name in ('ShiftViT', 'ReSwin', 'ReMViTv2', 'AugSwin', 'ReViT', 'AugViT'):
    width = 96 if name in ('ReViT', 'AugViT') else 48
    assert MODELS.build(dict(type='mmvit_ext.' + name, arch='nano')).out_channels[0] == width
assert OPTIM_WRAPPER_CONSTRUCTORS.get('mmvit_ext.LayerDecayOptimWrapperConstructor')
"""

BLOCKED = """
import sys
sys.modules['{package}'] = None
import torch, mmvit_ext
from mmengine.registry import MODELS
for name in ('ShiftViT', 'ReSwin', 'ReMViTv2', 'AugSwin', 'ReViT', 'AugViT'):
    model = MODELS.build(dict(type='mmvit_ext.' + name, arch='nano'))
    model.init_weights()
    model.eval()(torch.randn(1, 3, 64, 64))
"""

IMPORT_TIME = """
import sys, time
import torch, mmengine, mmcv
before = set(sys.modules)
start = time.perf_counter()
import mmvit_ext
seconds = time.perf_counter() - start
new = set(sys.modules) - before
assert seconds < 0.5, seconds
heavy = {'mmdet', 'mmseg', 'mmpretrain', 'timm', 'torchvision'}
assert not heavy & {m.split('.')[0] for m in new}
"""


def python(code, cwd='/'):
    """Runs code in a fresh interpreter; its output is shown if it fails."""
    result = subprocess.run(
        [sys.executable, '-W', 'error::DeprecationWarning:mmvit_ext', '-c', code],
        cwd=cwd, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.tools
@pytest.mark.parametrize('scope', ['mmdet', 'mmseg', 'mmpretrain'])
def test_builds_under_each_scope_from_any_folder(scope):
    python(BUILD.format(scope=scope))


@pytest.mark.tools
@pytest.mark.parametrize(
    'package',
    ['mmdet', 'mmseg', 'mmpretrain', 'mmcv._ext', 'mmcv.ops', 'timm', 'scipy', 'torchvision']
    + ['pkg_resources'],
)
def test_backbones_need_no_sister_package(package):
    python(BLOCKED.format(package=package))


@pytest.mark.tools
def test_import_is_light():
    python(IMPORT_TIME)


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(KeyError, match='AugSwin, .*mmvit_ext.ReMViTv2, .*mmvit_ext.ShiftViT'):
        ROOT_MODELS.build({'type': 'mmvit_ext.SwinTransformer'})


def test_parents_are_searched_without_a_scope():
    assert MODELS.get('LN') is ROOT_MODELS.get('LN')
