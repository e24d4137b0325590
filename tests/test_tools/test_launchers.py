"""The shell scripts that start several processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from mmvit_ext.engine.cli import test_parser as parser_of_test
from mmvit_ext.engine.run import test as run_test

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / 'tools'
CLASSIFIER = ROOT / 'configs' / 'demo' / 'reswin-nano_digits-cls.py'
NOT_PERSISTENT = 'persistent_workers=False'
FSDP = ROOT / 'configs' / '_base_' / 'strategies' / 'fsdp.py'


def start(script, *args, cwd, env=None, timeout=300):
    """Runs a script in another folder, with this interpreter unless ``env`` names one."""
    given = {k: v for k, v in os.environ.items() if k not in ('NNODES', 'PORT', 'SRUN_ARGS')}
    return subprocess.run(
        [str(TOOLS / script), *map(str, args)],
        cwd=cwd,
        env={**given, 'PYTHON': sys.executable, **(env or {})},
        capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


@pytest.fixture
def echo(tmp_path):
    """A program called ``srun`` or instead of Python that prints its arguments, one a line."""
    file = tmp_path / 'bin' / 'srun'
    file.parent.mkdir()
    file.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    'script, args',
    [
        ('dist_train.sh', ['c.py']),
        ('dist_train.sh', ['c.py', '--resume']),
        ('dist_test.sh', ['c.py', 'w.pth']),
        ('dist_test.sh', ['c.py', 'w.pth', '0']),
        ('slurm_train.sh', ['part', 'job', 'c.py']),
    ],
)
def test_wrong_arguments_are_answered_with_usage(script, args, tmp_path):
    result = start(script, *args, cwd=tmp_path)
    assert result.returncode == 2 and result.stdout == ''
    assert re.fullmatch(rf'usage: \S*{script} [A-Z_ ]+ \[arguments of \S+\]\n', result.stderr)


@pytest.mark.parametrize('script, named', [('dist_train.sh', []), ('dist_test.sh', ['w x.pth'])])
def test_one_machine_chooses_its_port_several_are_told(script, named, echo, tmp_path):
    args = ['a b.py', *named, '2', '--cfg-options', 'x="[1, 2]"']
    tool = f'{TOOLS}/{script.removeprefix("dist_").replace(".sh", ".py")}'
    tail = ['--nproc_per_node=2', tool, 'a b.py', *named, '--launcher', 'pytorch', *args[-2:]]
    env = {'PYTHON': str(echo)}
    alone = start(script, *args, cwd=tmp_path, env=env).stdout.splitlines()
    assert alone == ['-m', 'torch.distributed.run', '--standalone', *tail]
    one = start(script, *args, cwd=tmp_path, env={**env, 'PORT': '29501'}).stdout.splitlines()
    assert one[2:] == [
        '--nnodes=1', '--node_rank=0', '--master_addr=127.0.0.1', '--master_port=29501', *tail,
    ]  # fmt: skip
    more = {'NNODES': '2', 'NODE_RANK': '1', 'MASTER_ADDR': 'host'}
    two = start(script, *args, cwd=tmp_path, env={**env, **more}).stdout.splitlines()
    assert two[2:] == [
        '--nnodes=2', '--node_rank=1', '--master_addr=host', '--master_port=29500', *tail,
    ]  # fmt: skip


@pytest.mark.parametrize(
    'env, numbers, more',
    [
        ({}, (8, 8, 5), []),
        ({'GPUS': '4'}, (4, 4, 5), []),
        (
            {'GPUS': '16', 'GPUS_PER_NODE': '4', 'CPUS_PER_TASK': '2', 'SRUN_ARGS': '-x a --qos b'},
            (16, 4, 2),
            ['-x', 'a', '--qos', 'b'],
        ),
    ],
)
def test_slurm_is_asked_for_what_the_environment_says(env, numbers, more, echo, tmp_path):
    path = f'{echo.parent}:{os.environ["PATH"]}'
    result = start(
        'slurm_train.sh', 'part', 'my job', 'c.py', 'w d', '--amp', cwd=tmp_path,
        env={'PATH': path, 'PYTHON': 'py', **env},
    )  # fmt: skip
    gpus, per_node, cpus = numbers
    assert result.stdout.splitlines() == [
        '--partition=part', '--job-name=my job', f'--gres=gpu:{per_node}', f'--ntasks={gpus}',
        f'--ntasks-per-node={per_node}', f'--cpus-per-task={cpus}', '--kill-on-bad-exit=1', *more,
        'py', '-u', f'{TOOLS}/train.py', 'c.py', '--work-dir', 'w d', '--launcher', 'slurm',
        '--amp',
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.tools
def test_two_processes_train_sharded_and_one_tests_the_plain_checkpoint(digits, tmp_path):
    config = tmp_path / 'sharded.py'
    config.write_text(f'_base_ = [{str(CLASSIFIER)!r}, {str(FSDP)!r}]\n')
    common = [
        '--data-root',
        str(digits['imagenet']),
        '--cfg-options',
        'train_dataloader.batch_size=2',
    ]
    for part in ('train', 'val', 'test'):
        common += [f'{part}_dataloader.{key}' for key in ('num_workers=0', NOT_PERSISTENT)]
    common += ['train_cfg.max_epochs=1', 'train_cfg.val_interval=1']
    trained = start(
        'dist_train.sh', config, 2, '--work-dir', 'w', '--seed', 0, '--auto-scale-lr', *common,
        cwd=tmp_path,
    )  # fmt: skip
    assert trained.returncode == 0, trained.stderr[-3000:]
    # 2 processes x 2 images, where the learning rate is for 32
    assert 'Scaling the original LR by 0.125' in trained.stderr + trained.stdout

    file = tmp_path / 'w' / 'epoch_1.pth'
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(Config.fromfile(CLASSIFIER).model)
    model.load_state_dict(torch.load(file, weights_only=False)['state_dict'], strict=True)
    run_test(
        parser_of_test().parse_args(
            [str(config), str(file), '--work-dir', f'{tmp_path}/t', *common]
        )
    )
    tested = next((tmp_path / 't').glob('*/*.log')).read_text()
    assert accuracy(tested) == accuracy(trained.stdout + trained.stderr)


def accuracy(log):
    return re.findall(r'accuracy/top1: ([\d.]+)', log)[-1]
