"""Checkpoints through full disks and kills: what was there before stays."""

import builtins
import errno
import itertools

import pytest
import torch
from mmengine.fileio import LocalBackend
from mmengine.hooks import CheckpointHook as MMEngineCheckpointHook
from mmengine.runner import FlexibleRunner

from mmvit_ext.engine.hooks import checkpoint
from mmvit_ext.engine.resume import latest_checkpoint
from mmvit_ext.errors import UsageError


class Interrupted:
    """A file that takes half of what is written, then fails."""

    def __init__(self, path, error):
        self.path, self.error = path, error

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def write(self, content):
        self.path.write_bytes(content[: len(content) // 2])
        raise self.error


@pytest.fixture
def fail_at(monkeypatch):
    """Lets the n-th checkpoint written, counted from 1, fail half-way."""

    def fail(n, error):
        count = itertools.count(1)

        def opened(path, mode):
            if next(count) == n:
                return Interrupted(path, error)
            return builtins.open(path, mode)

        monkeypatch.setattr(checkpoint, 'open', opened, raising=False)

    return fail


def names(folder):
    return sorted(p.name for p in folder.iterdir() if '.pth' in p.name)


def hook_of(runner):
    return next(h for h in runner.hooks if isinstance(h, MMEngineCheckpointHook))


def test_newest_are_kept_and_complete(toy, tmp_path):
    runner = toy(epochs=4, interval=1, max_keep_ckpts=2, save_best='score', rule='greater')
    runner.train()
    work = tmp_path / 'w'
    assert names(work) == ['best_score_epoch_4.pth', 'epoch_3.pth', 'epoch_4.pth']
    assert (work / 'last_checkpoint').read_text() == str(work / 'epoch_4.pth')
    saved = torch.load(work / 'epoch_4.pth')
    assert torch.equal(saved['state_dict']['fc.weight'], runner.model.fc.weight)
    assert 'optimizer' in saved and saved['meta']['epoch'] == 4


NO_SPACE = OSError(errno.ENOSPC, 'No space left on device')


def test_full_disk_costs_no_earlier_checkpoint(toy, tmp_path, fail_at):
    fail_at(2, NO_SPACE)
    with pytest.raises(UsageError) as error:
        toy(epochs=4, interval=1, max_keep_ckpts=1).train()
    work = tmp_path / 'w'
    assert names(work) == ['epoch_1.pth']
    assert torch.load(work / 'epoch_1.pth')['meta']['iter'] == 5
    assert (work / 'last_checkpoint').read_text() == str(work / 'epoch_1.pth')
    text = str(error.value)
    assert text.startswith(f'checkpoint={work}/epoch_2.pth: could not be written (No space left')
    assert f'GiB free in {work})' in text and '\n' not in text
    assert f'last good checkpoint: {work}/epoch_1.pth; make room' in text


def test_full_disk_at_the_first_checkpoint(toy, tmp_path, fail_at):
    fail_at(1, NO_SPACE)
    with pytest.raises(UsageError, match='epoch_1.pth.*no checkpoint has been saved yet'):
        toy(epochs=1, interval=1).train()
    assert names(tmp_path / 'w') == []


def test_folder_that_cannot_be_made_is_named(toy, tmp_path):
    (tmp_path / 'file').touch()
    with pytest.raises(UsageError, match='epoch_1.pth: could not be written .Not a directory'):
        toy(epochs=1, interval=1, out_dir=str(tmp_path / 'file')).train()


def test_kill_while_writing_leaves_the_old_and_a_resumed_run_tidies_up(toy, tmp_path, fail_at):
    # unlike a failure, a kill gives no chance to clean up; no handler runs for this one either
    fail_at(2, KeyboardInterrupt())
    setting = dict(epochs=3, interval=1, max_keep_ckpts=1)
    with pytest.raises(KeyboardInterrupt):
        toy(**setting).train()
    work = tmp_path / 'w'
    assert names(work) == ['epoch_1.pth', 'epoch_2.pth.partial']
    assert latest_checkpoint(work) == str(work / 'epoch_1.pth')
    # another name than the one that the resumed run will write first
    (work / 'epoch_2.pth.partial').rename(work / 'best_score_epoch_2.pth.partial')
    runner = toy(resume=True, **setting)
    runner.train()
    assert names(work) == ['epoch_3.pth'] and runner.iter == 15


def test_best_checkpoint_is_replaced_only_by_a_complete_one(toy, tmp_path, fail_at):
    # written: epochs 1 and 2, best 2, epoch 2 again, epochs 3 and 4, then best 4 fails
    fail_at(7, NO_SPACE)
    setting = dict(epochs=4, interval=1, max_keep_ckpts=1, save_best='score', rule='greater')
    with pytest.raises(UsageError, match='best_score_epoch_4.pth: could not.*good.*epoch_4.pth'):
        toy(**setting).train()
    work = tmp_path / 'w'
    assert names(work) == ['best_score_epoch_2.pth', 'epoch_4.pth']
    known = torch.load(work / 'epoch_4.pth')['message_hub']['runtime_info']
    assert known['best_ckpt'] == str(work / 'best_score_epoch_2.pth')


def test_file_that_was_written_anew_is_not_removed(tmp_path):
    backend, paths = checkpoint.CarefulBackend(), [tmp_path / 'old.pth', tmp_path / 'again.pth']
    for path in paths:
        backend.put(b'1', path)
        backend.remove(path)
    folder = tmp_path / 'sharded'
    folder.mkdir()
    backend.rmtree(folder)
    backend.put(b'2', paths[1])
    assert paths[0].exists() and folder.exists()
    backend.remove_outdated({str(paths[1])})
    assert [p.name for p in tmp_path.iterdir()] == ['again.pth'] and paths[1].read_bytes() == b'2'


def test_other_storage_stays_with_mmengine(toy, tmp_path):
    runner = toy(epochs=2, interval=1, max_keep_ckpts=1, backend_args=dict(backend='local'))
    runner.train()
    assert type(hook_of(runner).file_backend) is LocalBackend
    assert names(tmp_path / 'w') == ['epoch_2.pth']


def test_published_checkpoint_holds_the_keys_asked_for(toy, tmp_path):
    toy(epochs=1, interval=1, published_keys=['state_dict']).train()
    published = next((tmp_path / 'w').glob('epoch_1-*.pth'))
    assert list(torch.load(published)) == ['state_dict']


def test_flexible_runner_saves_keeps_and_resumes(toy, tmp_path):
    work = tmp_path / 'w'
    for epochs, kept in ((2, 'epoch_2.pth'), (3, 'epoch_3.pth')):
        model = toy(epochs=1)
        runner = FlexibleRunner(
            model=model.model,
            work_dir=str(work),
            train_dataloader=model._train_dataloader,
            train_cfg=dict(by_epoch=True, max_epochs=epochs),
            optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.01)),
            default_hooks=dict(
                checkpoint=dict(type='mmvit_ext.CheckpointHook', interval=1, max_keep_ckpts=1),
                iteration_seed=dict(type='mmvit_ext.IterationSeedHook'),
                finite_loss=dict(type='mmvit_ext.FiniteLossHook'),
            ),
            default_scope='mmengine',
            experiment_name=f'flexible_{epochs}',
            resume=epochs == 3,
            log_level='ERROR',
        )
        runner.train()
        assert names(work) == [kept] and runner.iter == 5 * epochs
        assert latest_checkpoint(work) == str(work / kept)
