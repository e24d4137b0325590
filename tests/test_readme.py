"""Every command and every piece of Python in the README runs."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
README = (ROOT / 'README.md').read_text(encoding='utf-8')
BLOCKS = re.findall(r'```(\w+)\n(.*?)```', README, re.S)
COMMANDS = [line for kind, text in BLOCKS if kind == 'sh' for line in text.strip().splitlines()]
PYTHON = [text for kind, text in BLOCKS if kind == 'python']

# What makes the full model's commands small enough to run in a test.
SMALL = [
    'model.backbone.arch=nano',
    'model.neck.in_channels=[48,96,192,384]',
    'train_dataloader.batch_size=1',
    'train_dataloader.dataset.pipeline.2.scales=[(96,160)]',
    'val_dataloader.dataset.pipeline.1.scale=(160,96)',
    'test_dataloader.dataset.pipeline.1.scale=(160,96)',
    'train_cfg.max_epochs=1',
    'model.train_cfg.rpn_proposal.max_per_img=50',
    'model.test_cfg.rpn.max_per_img=50',
    *(f'model.train_cfg.rcnn.{i}.sampler.num=16' for i in range(3)),
]
# Too long for a test.
BY_HAND = ['make ablation']
# Run by CI itself or by the set-up before any test: the Makefile's targets, and installing.
BY_CI = ['make demo', 'make test', 'pip install torch torchvision', 'pip install -e ".[onedl]"']


def starting_with(words):
    return [c for c in COMMANDS if c.startswith(words)]


def run(command, cwd, *more):
    """Runs a command of the README in another folder, with this interpreter."""
    _, script, *args = shlex.split(command)
    line = [sys.executable, str(ROOT / script), *args, *more]
    result = subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-1500:] + result.stderr[-2500:]


def test_no_command_is_left_out():
    tools = starting_with('python tools/')
    assert sorted(tools + BY_CI + BY_HAND) == sorted(COMMANDS)
    assert len(tools) == 11


def test_ci_runs_the_test_command():
    assert 'make test' in (ROOT / '.ci' / 'run').read_text().splitlines()


@pytest.mark.parametrize(
    ('target', 'script'),
    [
        ('demo', 'tools/demo.py'),
        ('ablation', 'tools/ablation.py'),
        ('test-mim', 'tools/misc/test_mim.py'),
    ],
)
def test_targets_call_their_scripts(target, script):
    plan = subprocess.run(
        ['make', '-n', target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert script in plan.stdout and 'set_up.py' in plan.stdout and (ROOT / script).is_file()


def scope_of(block):
    """What a piece of Python of the README defines."""
    scope = {}
    exec(block, scope)
    return scope


def python_with(words):
    """The one piece of Python that holds ``words``."""
    (block,) = [text for text in PYTHON if words in text]
    return block


def test_backbones_of_the_readme_fit_their_necks():
    from mmvit_ext.registry import MODELS

    swin = scope_of(python_with("arch='tiny', drop_path_rate"))['model']
    assert swin['backbone'].pop('_delete_')
    backbone = MODELS.build(swin['backbone'])
    assert list(backbone.out_channels) == swin['neck']['in_channels']

    vit = scope_of(python_with('Feature2Pyramid'))['model']
    assert vit['backbone'].pop('_delete_')
    with torch.device('meta'):
        backbone, neck = MODELS.build(vit['backbone']), MODELS.build(vit['neck'])
        maps = neck(backbone(torch.empty(1, 3, 224, 320)))
    sizes = [(56, 80), (28, 40), (14, 20), (7, 10), (4, 5)]
    assert [tuple(m.shape) for m in maps] == [(1, 256, *size) for size in sizes]


def test_backbone_in_python_prints_its_maps(capsys):
    scope_of(python_with('480, 640'))
    shapes = '(1, 96, 120, 160), (1, 192, 60, 80), (1, 384, 30, 40), (1, 768, 15, 20)'
    assert shapes in capsys.readouterr().out


def test_mechanisms_in_a_model_of_ones_own():
    scope = scope_of(python_with('gate, shortcut'))
    assert scope['tokens'].shape == (2, 49, 64) and scope['carried'].shape == (2, 49, 49)
    scope['tokens'].sum().backward()
    assert scope['gate'].alpha.grad is not None


def test_initialisers_of_the_readme_are_known():
    from mmvit_ext.registry import WEIGHT_INITIALIZERS

    for words in ("checkpoint='weights.pth'", "begin='plain'"):
        cfg = scope_of(python_with(words))['init_cfg']
        assert WEIGHT_INITIALIZERS.build(cfg).checkpoint.endswith('.pth')


def test_layer_decay_of_the_readme_builds():
    from mmengine.optim import build_optim_wrapper

    from mmvit_ext.models import ShiftViT

    cfg = scope_of(python_with('LayerDecay'))['optim_wrapper']
    groups = build_optim_wrapper(ShiftViT('nano'), cfg).optimizer.param_groups
    assert min(g['lr'] for g in groups) < max(g['lr'] for g in groups) == 1e-4


def test_pictures_of_the_readme_are_there():
    pictures = re.findall(r'!\[.*?\]\((.*?)\)', README)
    assert pictures and all((ROOT / p).is_file() for p in pictures)


@pytest.mark.slow
@pytest.mark.tools
def test_commands_of_the_tools_run(tmp_path):
    shutil.copytree(ROOT / 'configs', tmp_path / 'configs')
    for command in starting_with('python tools/dataset_converters/make_digits.py'):
        run(command.replace('100', '3').replace('20', '3'), tmp_path)
    for command in starting_with('python tools/dataset_converters/check_data.py'):
        run(command, tmp_path)
    for command in starting_with('python tools/analysis_tools/browse_dataset.py'):
        run(command, tmp_path)
    assert (tmp_path / 'samples.jpg').stat().st_size > 10000
    pretrained, plain = starting_with('python tools/train.py')
    run(plain, tmp_path, '--cfg-options', *SMALL)
    for command in starting_with('python tools/test.py') + starting_with('python tools/predict.py'):
        command = command.replace('epoch_36', 'epoch_1')
        if 'predict.py' in command:
            # takes no options, so the config that the training run wrote stands in
            dumped = 'work_dirs/cascade_rcnn_reswin_t_coco/cascade_rcnn_reswin_t_coco.py'
            command = command.replace('configs/cascade_rcnn_reswin_t_coco.py', dumped)
            run(command, tmp_path)
        else:
            run(command, tmp_path, '--cfg-options', *SMALL)
    assert len(list((tmp_path / 'predictions').glob('*.json'))) == 3

    trained = tmp_path / 'work_dirs' / 'cascade_rcnn_reswin_t_coco' / 'epoch_1.pth'
    torch.save(torch.load(trained, weights_only=False)['state_dict'], tmp_path / 'weights.pth')
    run(pretrained, tmp_path, *SMALL)
    shutil.copy(tmp_path / 'weights.pth', tmp_path / 'downloaded.pth')
    bare, _ = starting_with('python tools/model_converters/convert.py')
    run(bare, tmp_path)
    assert 'state_dict' in torch.load(tmp_path / 'backbone.pth', weights_only=True)


@pytest.mark.slow
@pytest.mark.tools
def test_demo_in_quick_form(tmp_path):
    import json

    run(f'python tools/demo.py --quick --out {tmp_path}', ROOT)
    summary = json.loads((tmp_path / 'summary.json').read_text())
    assert set(summary) == {'cls_top1', 'bbox_mAP', 'segm_mAP', 'seconds'}
    assert {'data', 'pretrain', 'train', 'test', 'predict', 'total'} == set(summary['seconds'])
    assert len(list((tmp_path / 'predictions').glob('*.jpg'))) >= 6
