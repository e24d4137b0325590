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
    assert sorted(tools + BY_CI) == sorted(COMMANDS)
    assert len(tools) == 7


def test_ci_runs_the_test_command():
    assert 'make test' in (ROOT / '.ci' / 'run').read_text().splitlines()


def test_make_demo_calls_the_demo():
    plan = subprocess.run(
        ['make', '-n', 'demo'], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert 'tools/demo.py' in plan.stdout and 'set_up.py' in plan.stdout


def test_python_of_the_readme_runs(capsys):
    model, use, init = PYTHON
    scope = {}
    exec(model, scope)
    assert scope['model']['backbone'].pop('_delete_')
    from mmvit_ext.registry import MODELS

    backbone = MODELS.build(scope['model']['backbone'])
    assert list(backbone.out_channels) == scope['model']['neck']['in_channels']
    exec(use, {})
    shapes = '(1, 96, 120, 160), (1, 192, 60, 80), (1, 384, 30, 40), (1, 768, 15, 20)'
    assert shapes in capsys.readouterr().out
    exec(init, scope)
    assert scope['init_cfg']['type'] == 'Pretrained'


def test_pictures_of_the_readme_are_there():
    pictures = re.findall(r'!\[.*?\]\((.*?)\)', README)
    assert pictures and all((ROOT / p).is_file() for p in pictures)


@pytest.mark.slow
@pytest.mark.tools
def test_commands_of_the_tools_run(tmp_path):
    shutil.copytree(ROOT / 'configs', tmp_path / 'configs')
    for command in starting_with('python tools/dataset_converters/make_digits.py'):
        run(command.replace('100', '3').replace('20', '3'), tmp_path)
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


@pytest.mark.slow
@pytest.mark.tools
def test_demo_in_quick_form(tmp_path):
    import json

    run(f'python tools/demo.py --quick --out {tmp_path}', ROOT)
    summary = json.loads((tmp_path / 'summary.json').read_text())
    assert set(summary) == {'cls_top1', 'bbox_mAP', 'segm_mAP', 'seconds'}
    assert {'data', 'pretrain', 'train', 'test', 'predict', 'total'} == set(summary['seconds'])
    assert len(list((tmp_path / 'predictions').glob('*.jpg'))) >= 6
