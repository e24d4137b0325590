"""Runs that were killed: where they go on from, and that they end as if nothing had been."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from mmvit_ext.datasets import DigitSettings, make_digits
from mmvit_ext.engine.checkpoint_file import read_checkpoint
from mmvit_ext.engine.cli import train_parser
from mmvit_ext.engine.config import apply_train_options, run_config
from mmvit_ext.engine.resume import latest_checkpoint, recorded_seed
from mmvit_ext.engine.run import train
from mmvit_ext.errors import UsageError

ROOT = Path(__file__).parents[2]


def save(path, seed=None, **changes):
    """Writes a file with the keys of a run's checkpoint."""
    content = {
        'meta': {'epoch': 1, 'iter': 5, 'seed': seed},
        'message_hub': {},
        'state_dict': {'w': torch.randn(1000)},
        **changes,
    }
    torch.save({key: value for key, value in content.items() if value is not None}, path)
    return path


def cut(path):
    path.write_bytes(path.read_bytes()[:2000])


@pytest.fixture
def run(tmp_path):
    """A run with checkpoints of epochs 8 to 10, and other files that are no step of it."""
    for epoch in (8, 9, 10):
        save(tmp_path / f'epoch_{epoch}.pth')
    # later, or not of this run, or not whole
    for name in ('epoch_12.pth', 'best_acc_epoch_9.pth', 'iter_9.pth', 'epoch_9-0a1b.pth'):
        save(tmp_path / name)
    save(tmp_path / 'epoch_11.pth.partial')
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'epoch_10.pth'))
    return tmp_path


@pytest.fixture
def warnings(monkeypatch):
    """What is told the user."""
    told = []
    monkeypatch.setattr('mmvit_ext.engine.resume.print_log', lambda *args: told.append(args[0]))
    return told


def test_last_checkpoint_is_taken_silently(run, warnings, tmp_path):
    assert latest_checkpoint(run) == f'{run}/epoch_10.pth' and not warnings
    (tmp_path / 'new').mkdir()
    assert latest_checkpoint(tmp_path / 'new') is None


@pytest.mark.parametrize('bad', [1, 2])
def test_broken_files_are_named_and_the_one_before_is_taken(run, warnings, bad):
    broken = [run / f'epoch_{epoch}.pth' for epoch in (10, 9)[:bad]]
    for path in broken:
        cut(path)
    assert latest_checkpoint(run) == f'{run}/epoch_{10 - bad}.pth'
    assert len(warnings) == 1 and f'taking {run}/epoch_{10 - bad}.pth instead' in warnings[0]
    assert all(f'{path}: not a checkpoint, or cut off' in warnings[0] for path in broken)


def test_none_readable_is_an_error_that_names_all(run):
    for epoch in (8, 9):
        cut(run / f'epoch_{epoch}.pth')
    (run / 'epoch_10.pth').unlink()
    with pytest.raises(UsageError, match='no checkpoint of .* can be read.*--resume=') as error:
        latest_checkpoint(run)
    assert all(f'{run}/epoch_{epoch}.pth: ' in str(error.value) for epoch in (8, 9, 10))
    assert '\n' not in str(error.value)


def test_weights_alone_are_no_checkpoint_of_a_run(run, warnings):
    save(run / 'epoch_10.pth', message_hub=None)
    assert latest_checkpoint(run) == f'{run}/epoch_9.pth'
    assert 'epoch_10.pth: no checkpoint of a run (without message_hub)' in warnings[0]


def test_emptied_pointer(run, warnings):
    for name in ('epoch_12.pth', 'iter_9.pth'):
        (run / name).unlink()
    (run / 'last_checkpoint').write_text('')
    assert latest_checkpoint(run) == f'{run}/epoch_10.pth'
    assert 'last_checkpoint: empty' in warnings[0]


def test_moved_run_and_own_names(tmp_path, warnings):
    for step in (900, 1000):
        save(tmp_path / f'v2_step{step}.ckpt')
    (tmp_path / 'last_checkpoint').write_text('/gone/v2_step1000.ckpt')
    assert latest_checkpoint(tmp_path) == f'{tmp_path}/v2_step1000.ckpt'
    assert '/gone/v2_step1000.ckpt: no such file' in warnings[0]
    cut(tmp_path / 'v2_step1000.ckpt')
    assert latest_checkpoint(tmp_path) == f'{tmp_path}/v2_step900.ckpt'


def test_folders_addresses_and_unsafe_files_are_left_to_mmengine(run, warnings):
    pointer = run / 'last_checkpoint'
    for named in (str(run), 's3://bucket/epoch_10.pth'):
        pointer.write_text(named)
        assert latest_checkpoint(run) == named
    pointer.write_text(str(save(run / 'epoch_10.pth', extra=Path('x'))))
    with pytest.raises(ValueError, match='refuses to unpickle'):
        read_checkpoint(run / 'epoch_10.pth')
    assert latest_checkpoint(run) == f'{run}/epoch_10.pth' and not warnings


def test_seed_of_the_run_is_taken_over(tmp_path):
    file = save(tmp_path / 'epoch_1.pth', seed=42)
    assert recorded_seed(str(file)) == 42
    assert recorded_seed(str(save(tmp_path / 'a.pth', meta=None))) is None
    cut(file)
    assert recorded_seed(str(file)) is None


CONFIG = """
_base_ = '{base}'
# random numbers in the model and in the worker that augments
model = dict(backbone=dict(drop_path_rate=0.3))
pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomCrop', crop_size=32, padding=4),
    dict(type='RandomErasing', erase_prob=0.5),
    dict(type='PackInputs'),
]
train_dataloader = dict(batch_size=2, dataset=dict(pipeline=pipeline))
val_dataloader = dict(num_workers=0, persistent_workers=False)
test_dataloader = val_dataloader
train_cfg = dict(max_epochs=4, val_interval=2)
"""
KILLED = """
_base_ = 'config.py'
custom_imports = dict(imports=['killer'])
custom_hooks = [dict(type='Killer', at={at})]
"""
KILLER = """
import os, signal
from mmengine.hooks import Hook
from mmengine.registry import HOOKS

@HOOKS.register_module()
class Killer(Hook):
    def __init__(self, at):
        self.at = at

    def after_train_iter(self, runner, *args, **kwargs):
        if runner.iter + 1 == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.tools
def test_killed_run_ends_with_the_weights_of_an_unbroken_one(tmp_path, monkeypatch):
    monkeypatch.delenv('LOCAL_RANK', raising=False)
    data = tmp_path / 'data'
    make_digits(data, DigitSettings(layout='imagenet', train=8, val=4, height=32, width=32))
    # four iterations an epoch; one is saved by then, and some more are lost
    at = random.randrange(6, 15)
    base = ROOT / 'configs/demo/reswin-nano_digits-cls.py'
    (tmp_path / 'config.py').write_text(CONFIG.format(base=base))
    (tmp_path / 'killed.py').write_text(KILLED.format(at=at))
    (tmp_path / 'killer.py').write_text(KILLER)

    def arguments(config, work, *more):
        where = ['--data-root', str(data), '--work-dir', str(tmp_path / work)]
        return [str(tmp_path / config), *where, *more]

    # no seed is given: the resumed run has to find it
    killed = subprocess.run(
        [sys.executable, str(ROOT / 'tools' / 'train.py'), *arguments('killed.py', 'w')],
        env={
            **os.environ,
            'PYTHONPATH': str(tmp_path),
            'OMP_NUM_THREADS': str(torch.get_num_threads()),
        },
        cwd=ROOT,
        capture_output=True,
        timeout=300,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    last = tmp_path / 'w' / f'epoch_{(at - 1) // 4}.pth'
    assert (tmp_path / 'w' / 'last_checkpoint').read_text() == str(last)
    seed = recorded_seed(str(last))

    train(train_parser().parse_args(arguments('config.py', 'w', '--resume')))
    unbroken = arguments('config.py', 'unbroken', '--seed', str(seed))
    train(train_parser().parse_args(unbroken))
    ends = [read_checkpoint(tmp_path / work / 'epoch_4.pth') for work in ('w', 'unbroken')]
    resumed, expected = (end['state_dict'] for end in ends)
    assert resumed.keys() == expected.keys() and ends[0]['meta']['iter'] == 16
    different = [k for k in expected if not torch.equal(resumed[k], expected[k])]
    assert not different, f'killed at iteration {at}'
    states = [end['optimizer']['state'] for end in ends]
    assert all(torch.equal(states[0][i]['exp_avg'], s['exp_avg']) for i, s in states[1].items())


def test_config_of_a_resumed_run(run):
    args = train_parser().parse_args(
        [str(ROOT / 'configs/demo/reswin-nano_digits-cls.py'), '--work-dir', str(run), '--resume']
    )
    save(run / 'epoch_9.pth', seed=7)
    cut(run / 'epoch_10.pth')
    cfg = run_config(args, ())
    apply_train_options(cfg, args)
    assert cfg.resume and cfg.load_from == f'{run}/epoch_9.pth' and cfg.randomness.seed == 7
    args.seed = 8
    cfg = run_config(args, ())
    apply_train_options(cfg, args)
    assert cfg.randomness.seed == 8
