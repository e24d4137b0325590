"""A loss or weights that are not finite stop a run while its checkpoints are still good."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn as nn

from mmvit_ext.engine.cli import train_parser
from mmvit_ext.engine.config import run_config
from mmvit_ext.engine.hooks.finite_loss import FiniteLossHook
from mmvit_ext.errors import UsageError

HOOKS = {'finite_loss': dict(type='mmvit_ext.FiniteLossHook')}


def spoiled(toy, at, value, **kwargs):
    """A toy run whose loss is multiplied by a value at one iteration, counted from 1."""
    runner = toy(**{'hooks': HOOKS, **kwargs})
    runner.model.spoil = lambda model, loss: loss * (value if model.calls == at else 1)
    return runner


def test_nan_stops_with_iteration_names_and_checkpoint(toy, tmp_path):
    with pytest.raises(UsageError) as error:
        spoiled(toy, 7, torch.nan, epochs=4, interval=1).train()
    good = tmp_path / 'w' / 'epoch_1.pth'
    text = str(error.value)
    assert text.startswith(
        f'loss is not finite at iteration 7 (epoch 2): loss=nan, loss_a=nan; last good '
        f'checkpoint: {good}; go on from it with --resume'
    )
    assert 'clip_grad' in text and 'optimizer.lr' in text and '\n' not in text
    assert [p.name for p in good.parent.glob('*.pth')] == ['epoch_1.pth']
    assert all(w.isfinite().all() for n, w in torch.load(good)['state_dict'].items() if n != 'mask')


def test_infinite_loss_before_any_checkpoint(toy):
    # iteration 3 is to be saved, after the check
    with pytest.raises(UsageError, match=r'iteration 3 .*loss=inf.*no checkpoint .*: start anew'):
        spoiled(toy, 3, torch.inf, iters=9, interval=3).train()


def test_weights_spoiled_under_a_finite_loss_are_not_saved(toy, tmp_path):
    runner = toy(hooks=HOOKS, epochs=4, interval=1)

    def spoil_gradient(model, loss):
        if model.calls == 10:
            model.fc.bias.register_hook(lambda grad: grad * torch.inf)
        return loss

    runner.model.spoil = spoil_gradient
    # the last iteration of epoch 2: its loss is fine, its weights are not
    with pytest.raises(
        UsageError, match='after iteration 10: fc.bias; they are not saved'
    ) as error:
        runner.train()
    assert f'last good checkpoint: {tmp_path}/w/epoch_1.pth;' in str(error.value)
    assert [p.name for p in (tmp_path / 'w').glob('*.pth*')] == ['epoch_1.pth']


def test_losses_are_read_without_mmengines_own_hook(toy):
    hooks = {**HOOKS, 'runtime_info': None, 'logger': None}
    with pytest.raises(UsageError, match='iteration 2 .*loss_a=nan'):
        spoiled(toy, 2, torch.nan, epochs=1, hooks=hooks).train()


def test_none_turns_hooks_off():
    config = 'configs/demo/reswin-nano_digits-cls.py'
    names = ('finite_loss', 'iteration_seed', 'checkpoint')
    hooks = run_config(train_parser().parse_args([config]), ()).default_hooks
    assert [hooks[name].type for name in names] == [
        'mmvit_ext.FiniteLossHook',
        'mmvit_ext.IterationSeedHook',
        'mmvit_ext.CheckpointHook',
    ]
    off = [f'default_hooks.{name}=None' for name in names]
    args = train_parser().parse_args([config, '--cfg-options', *off])
    hooks = run_config(args, ()).default_hooks
    # without its key mmengine would register its own
    assert hooks.checkpoint is None
    assert 'finite_loss' not in hooks and 'iteration_seed' not in hooks


def test_run_goes_on_without_the_hook(toy):
    runner = spoiled(toy, 2, torch.nan, epochs=1, hooks={})
    runner.train()
    assert runner.iter == 5


def test_sharded_weights_are_looked_at_under_their_plain_names():
    """FullyShardedDataParallel puts a name of its own between those of its modules."""
    block = nn.Module()
    block._fsdp_wrapped_module = nn.Linear(2, 2)
    runner = SimpleNamespace(model=nn.ModuleDict({'block': block}))
    state = {'block.weight': torch.tensor([1.0, torch.nan]), 'block.bias': torch.zeros(2)}
    checkpoint = {'state_dict': state, 'meta': {'iter': 7}}
    with pytest.raises(UsageError, match='after iteration 7: block.weight; they are not saved'):
        FiniteLossHook().before_save_checkpoint(runner, checkpoint)
