"""The converter of checkpoint files, through its command line."""

import subprocess
import sys
from pathlib import Path

import pytest
import timm
import torch
from mmengine.model.weight_init import PretrainedInit
from mmengine.registry import MODELS, DefaultScope
from mmpretrain.models import build_classifier

from mmvit_ext.engine.cli import convert_parser
from mmvit_ext.engine.convert_file import convert_file
from mmvit_ext.errors import UsageError
from mmvit_ext.models import AugViT

TOOL = Path(__file__).parents[2] / 'tools' / 'model_converters' / 'convert.py'


@pytest.fixture
def deit(tmp_path):
    """A checkpoint of timm at the size of nano, and its network."""
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=64, embed_dim=96, depth=4, num_heads=3, num_classes=10
    ).eval()
    torch.save({'model': model.state_dict()}, tmp_path / 'deit.pth')
    return tmp_path / 'deit.pth', model


def run(*args):
    convert_file(convert_parser().parse_args([str(arg) for arg in args]))


@pytest.mark.parametrize('scope', ['mmdet', 'mmseg', 'mmpretrain'])
def test_backbone_loads_under_each_scope(deit, tmp_path, scope, capsys):
    file, theirs = deit
    run(file, tmp_path / 'new' / 'out.pth')
    assert 'ViT of timm or ReViT' in capsys.readouterr().out
    init = {'type': 'Pretrained', 'checkpoint': str(tmp_path / 'new' / 'out.pth')}
    cfg = {'type': 'mmvit_ext.AugViT', 'arch': 'nano', 'num_paths': 0, 'img_size': 64}
    with DefaultScope.overwrite_default_scope(scope):
        model = MODELS.build({**cfg, 'init_cfg': init})
        model.init_weights()
    assert torch.equal(model.blocks[3].attn.qkv.weight, theirs.blocks[3].attn.qkv.weight)
    assert torch.equal(model.norm3.bias, theirs.norm.bias)
    AugViT('nano', num_paths=0, img_size=64).load_state_dict(
        torch.load(init['checkpoint'], weights_only=True)['state_dict'], strict=True
    )


def test_backbone_loads_through_mmengines_initialiser(deit, tmp_path):
    file, theirs = deit
    run(file, tmp_path / 'out.pth')
    model = AugViT('nano', num_paths=0, img_size=64)
    PretrainedInit(str(tmp_path / 'out.pth'))(model)
    assert torch.equal(model.blocks[3].mlp.fc2.weight, theirs.blocks[3].mlp.fc2.weight)
    assert torch.equal(model.cls_token, theirs.cls_token)


def test_classifier_of_mmpretrain_computes_the_same(deit, tmp_path):
    file, theirs = deit
    run(file, tmp_path / 'out.pth', '--to', 'classifier')
    model = build_classifier(
        {
            'type': 'ImageClassifier',
            'backbone': {
                'type': 'mmvit_ext.AugViT',
                'arch': 'nano',
                'num_paths': 0,
                'img_size': 64,
                'out_type': 'cls_token',
            },
            'head': {'type': 'LinearClsHead', 'num_classes': 10, 'in_channels': 96},
        }
    ).eval()
    content = torch.load(tmp_path / 'out.pth', weights_only=True)
    model.load_state_dict(content['state_dict'], strict=True)
    assert content['meta']['source'] == 'ViT of timm or ReViT'
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        scores = model.head(model.extract_feat(x))
        torch.testing.assert_close(scores, theirs(x), atol=1e-5, rtol=1e-5)


def test_what_was_there_stays_when_something_is_wrong(deit, tmp_path):
    file, _ = deit
    before = file.read_bytes()
    with pytest.raises(UsageError, match='is the source itself'):
        run(file, file)
    assert file.read_bytes() == before
    bare = tmp_path / 'bare.pth'
    torch.save(AugViT('nano').state_dict(), bare)
    out = tmp_path / 'out.pth'
    out.write_text('old')
    with pytest.raises(UsageError, match='--to classifier: .*has no classifier'):
        run(bare, out, '--to', 'classifier')
    (tmp_path / 'cut.pth').write_bytes(before[:1000])
    with pytest.raises(UsageError, match='cut off'):
        run(tmp_path / 'cut.pth', out)
    assert out.read_text() == 'old'


def test_no_other_file_is_touched(deit, tmp_path):
    file, _ = deit
    source = file.rename(tmp_path / 'out.pth.part')
    before = source.read_bytes()
    run(source, tmp_path / 'out.pth')
    (tmp_path / 'folder').mkdir()
    with pytest.raises(UsageError, match='cannot be written'):
        run(source, tmp_path / 'folder')
    assert source.read_bytes() == before
    assert {f.name for f in tmp_path.iterdir()} == {'folder', 'out.pth', 'out.pth.part'}


@pytest.mark.tools
def test_command_line(deit, tmp_path):
    file, _ = deit
    out = tmp_path / 'out.pth'
    command = [sys.executable, str(TOOL)]
    result = subprocess.run([*command, str(file), str(out)], capture_output=True, text=True)
    assert result.returncode == 0 and out.is_file(), result.stderr
    result = subprocess.run([*command, 'none.pth', str(out)], capture_output=True, text=True)
    assert result.returncode == 2
    assert [line for line in result.stderr.splitlines() if 'error: IN=none.pth' in line]
