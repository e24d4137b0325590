"""Two processes compute what one does with the same global batch; settings come from configs.

Losses and weights agree within TOLERANCE, float32's rounding: sums are taken in another order.
AdamW divides by the root of the squares, so a gradient that is nothing but rounding would move a
weight by a whole step; its eps is large enough here to keep such noise small.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from distributed_worker import (
    CASES,
    DETECTION,
    RESUMED,
    SWIN,
    classifier,
    save_start,
    settings,
    train,
)
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from mmvit_ext.engine.distributed import check_launcher, drop_sharding, prepare_cpu
from mmvit_ext.engine.fsdp import wrap_blocks
from mmvit_ext.errors import UsageError

WORKER = Path(__file__).with_name('distributed_worker.py')
STRATEGIES = WORKER.parents[2] / 'configs' / '_base_' / 'strategies'
TOLERANCE = {'rtol': 1e-5, 'atol': 3e-6}
FSDP = [case for case in CASES if case.startswith('fsdp')]
DDP = [case for case in CASES if case not in FSDP]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Where two processes have trained all cases; they would hang if one waited in vain."""
    folder = tmp_path_factory.mktemp('distributed')
    for case in CASES:
        save_start(case, folder)
    command = ['-m', 'torch.distributed.run', '--standalone', '--nproc_per_node=2', str(WORKER)]
    result = subprocess.run(
        [sys.executable, *command, str(folder), *CASES, DETECTION],
        capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-4000:]
    return folder


def outcome(folder, case):
    """What the two processes returned."""
    return [torch.load(folder / f'{case}_{rank}.pth') for rank in (0, 1)]


def saved(folder, case):
    """The state dict of the last checkpoint, which the first process wrote."""
    file = folder / f'{case}_2' / f'epoch_{1 + (case in RESUMED)}.pth'
    return torch.load(file, weights_only=False)['state_dict']


@pytest.mark.slow
@pytest.mark.tools
@pytest.mark.parametrize('case', CASES)
def test_two_processes_compute_what_one_does(case, folder):
    first, second = outcome(folder, case)
    alone = train(settings(case, folder, processes=1), 'none')
    weights = saved(folder, case)
    assert weights.keys() == alone['weights'].keys()
    start = torch.load(folder / f'{case}.pth')['state_dict']
    moved = max((weights[key] - start[key]).abs().max() for key in start)
    assert moved > 100 * TOLERANCE['atol']
    for key, value in alone['weights'].items():
        torch.testing.assert_close(weights[key], value, **TOLERANCE)

    losses, expected = torch.tensor(first['losses']), torch.tensor(alone['losses'])
    # of accumulated batches each has its own
    torch.testing.assert_close(losses.view(len(expected), -1).mean(1), expected, **TOLERANCE)
    assert first['losses'] == second['losses']


@pytest.mark.slow
@pytest.mark.tools
@pytest.mark.parametrize('case', [*DDP, DETECTION])
def test_both_processes_end_with_the_same_weights(case, folder):
    first, second = (result['weights'] for result in outcome(folder, case))
    assert first.keys() == second.keys()
    assert all(torch.equal(value, second[key]) for key, value in first.items())


@pytest.mark.slow
@pytest.mark.tools
def test_a_process_without_objects_keeps_the_others_going(folder):
    losses = outcome(folder, DETECTION)[0]['losses']
    assert len(losses) == 4 and all(torch.tensor(losses).isfinite())


@pytest.mark.slow
@pytest.mark.tools
@pytest.mark.skipif(sys.platform != 'linux', reason='threads are read from /proc')
def test_no_thread_is_left_that_could_abort_the_process_at_its_end(folder):
    for rank in (0, 1):
        threads = (folder / f'threads_{rank}.txt').read_text()
        assert threads and 'gloo' not in threads


@pytest.mark.slow
@pytest.mark.tools
@pytest.mark.parametrize('case', FSDP)
def test_shards_are_halves_and_the_checkpoint_is_plain(case, folder):
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(classifier(CASES[case][1]))
    model.load_state_dict(saved(folder, case), strict=True)
    total = sum(p.numel() for p in model.parameters())
    held = [result['held'] for result in outcome(folder, case)]
    # each of the units is padded to a multiple of the processes
    assert total <= sum(held) <= total + 100
    assert max(held) < 0.51 * total


def test_two_accumulated_half_batches_equal_a_whole_one(tmp_path):
    case = 'ddp-aug-accumulate'
    save_start(case, tmp_path)
    whole, halves = (settings(case, tmp_path, processes=1) for _ in range(2))
    halves.train_dataloader.batch_size //= 2
    halves.optim_wrapper.accumulative_counts = 2
    halves.experiment_name += '_halves'
    expected = train(whole, 'none')['weights']
    for key, value in train(halves, 'none')['weights'].items():
        torch.testing.assert_close(value, expected[key], **TOLERANCE)


@pytest.mark.parametrize(
    'name, blocks',
    [('ShiftViT', 10), ('ReSwin', 8), ('AugSwin', 8), ('ReMViTv2', 6), ('ReViT', 4), ('AugViT', 4)],
)
def test_each_block_is_a_unit_and_a_shared_gate_in_none(name, blocks):
    gates = {'alpha_mode': 'shared'} if name.startswith('Re') else {}
    with torch.device('meta'):
        model = MODELS.build({'type': f'mmvit_ext.{name}', 'arch': 'nano', **gates})
    units = [m for m in model.modules() if wrap_blocks(m, recurse=False, nonwrapped_numel=0)]
    assert len(units) == blocks
    alphas = [n for unit in units for n, _ in unit.named_parameters() if 'alpha' in n]
    assert not alphas and all(wrap_blocks(m, True, 0) for m in model.modules())


def config(strategy, launcher):
    cfg = Config.fromfile(STRATEGIES / f'{strategy}.py')
    cfg.launcher = launcher
    return cfg


def test_sharding_needs_a_launcher():
    with pytest.raises(UsageError, match='strategy.type=mmvit_ext.FSDPStrategy.*dist_train.sh'):
        check_launcher(config('fsdp', 'none'))
    check_launcher(config('fsdp', 'pytorch'))
    check_launcher(config('ddp', 'none'))


def test_clusters_need_a_gpu(monkeypatch):
    for visible in (True, False):
        monkeypatch.setattr(torch.cuda, 'is_available', lambda visible=visible: visible)
        if visible:
            check_launcher(config('ddp', 'slurm'))
        else:
            with pytest.raises(UsageError, match='--launcher=slurm: needs GPUs.*dist_train.sh'):
                check_launcher(config('ddp', 'slurm'))


def test_nothing_changes_on_a_gpu_or_in_one_process(monkeypatch):
    for launcher, visible in (('pytorch', True), ('none', False)):
        monkeypatch.setattr(torch.cuda, 'is_available', lambda visible=visible: visible)
        cfg = config('ddp', launcher)
        before = cfg.to_dict()
        prepare_cpu(cfg)
        assert cfg.to_dict() == before and not torch.distributed.is_initialized()


def test_tests_are_not_sharded():
    cfg = config('fsdp', 'none')
    cfg.model = {'backbone': SWIN}
    drop_sharding(cfg)
    assert cfg.to_dict() == {'launcher': 'none', 'model': {'backbone': SWIN}}
    plain = config('ddp', 'none')
    drop_sharding(plain)
    assert 'model_wrapper_cfg' in plain
