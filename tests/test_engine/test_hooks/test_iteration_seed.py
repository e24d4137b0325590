"""Runs that were broken off end with the weights of unbroken ones, bit for bit."""

import contextlib
import pickle
import random

import numpy as np
import pytest
import torch
from mmengine.registry import LOOPS
from mmengine.runner import IterBasedTrainLoop
from mmengine.runner.loops import _InfiniteDataloaderIterator

from mmvit_ext.engine.hooks.iteration_seed import SeededBatches, seed_everything


@LOOPS.register_module()
class ReplayingLoop(IterBasedTrainLoop):
    """Does as upstream mmengine: starts workers at once, and fetches again what has been used."""

    class Batches:
        def __init__(self, dataloader):
            self.iterator = iter(dataloader)

        def __next__(self):
            return next(self.iterator)

        def skip_iter(self, count):
            for _ in range(count):
                next(self)

    def __init__(self, runner, dataloader, **kwargs):
        super().__init__(runner, dataloader, **kwargs)
        self.dataloader_iterator = self.Batches(self.dataloader)


def trained(runner):
    """Weights of a run at its end, or where it was stopped; its workers are gone by then."""
    with contextlib.suppress(KeyboardInterrupt):
        runner.train()
    runner.train_loop.dataloader_iterator = runner.train_dataloader._iterator = None
    return torch.cat([p.detach().flatten() for p in runner.model.parameters()])


def broken_and_unbroken(toy, stop, **kwargs):
    """Weights of a run stopped at an iteration and resumed, and of one that was not."""
    broken = toy(stop=stop, **kwargs)
    trained(broken)
    assert broken.iter == stop - 1
    return trained(toy(resume=True, **kwargs)), trained(toy(work='unbroken', **kwargs))


@pytest.mark.parametrize('workers, persistent', [(0, False), (1, False), (2, True)])
def test_epochs_resume_bit_for_bit(toy, workers, persistent):
    # validation after epochs 2 and 4; the checkpoint of epoch 2 or 3 is resumed from
    for stop in (12, 18) if workers == 1 else (14,):
        setting = dict(epochs=4, interval=1, workers=workers, persistent=persistent)
        resumed, unbroken = broken_and_unbroken(toy, stop, **setting)
        assert torch.equal(resumed, unbroken)


@pytest.mark.parametrize('workers', [0, 1, 2])
@pytest.mark.parametrize(
    'loop',
    [
        'IterBasedTrainLoop',
        pytest.param(
            'ReplayingLoop',
            marks=pytest.mark.skipif(
                not hasattr(_InfiniteDataloaderIterator, 'skip_iter'),
                reason="this mmengine's own loop replays",
            ),
        ),
    ],
)
def test_iterations_resume_bit_for_bit(toy, loop, workers):
    # iteration 8, the last one saved, is followed by a validation in the unbroken run
    resumed, unbroken = broken_and_unbroken(
        toy, 10, iters=14, interval=4, workers=workers, loop=loop
    )
    assert torch.equal(resumed, unbroken)


def test_without_the_hook_they_would_not(toy):
    resumed, unbroken = broken_and_unbroken(toy, 12, epochs=3, interval=1, hooks={})
    assert not torch.equal(resumed, unbroken)


def test_number_of_workers_does_not_matter_but_the_seed_does(toy):
    ends = {}
    for name, setting in {
        'none': dict(workers=0),
        'two': dict(workers=2),
        'kept': dict(workers=1, persistent=True),
        'other': dict(seed=4),
    }.items():
        ends[name] = trained(toy(work=name, epochs=2, **setting))
    assert torch.equal(ends['none'], ends['two']) and torch.equal(ends['none'], ends['kept'])
    assert not torch.equal(ends['none'], ends['other'])


class Draws(torch.utils.data.Dataset):
    """Three samples that are nothing but random numbers."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return random.random(), np.random.rand(), torch.rand(()).item()


def test_each_batch_has_its_own_numbers_and_repeats_them():
    dataset = Draws()
    first = SeededBatches(dataset, 1, 0, upcoming=7)([0, 1])
    assert first == pickle.loads(pickle.dumps(SeededBatches(dataset, 1, 0, 7)))([0, 1])
    others = [(2, 0, 7), (1, 1, 7), (1, 0, 8), (0, 1, 7)]
    draws = {SeededBatches(dataset, *key)([0])[0] for key in others} | set(first)
    assert len(draws) == 6 and all(len(set(numbers)) == 3 for numbers in draws)


def test_own_batch_fetching_of_a_dataset_is_kept():
    class Fetching(Draws):
        def __getitems__(self, indices):
            return [torch.rand(()).item() for _ in indices]

    dataset = Fetching()
    dataset.__getitems__ = SeededBatches(dataset, 1, 0, upcoming=7)
    loader = torch.utils.data.DataLoader(dataset, batch_size=3, collate_fn=list)
    assert next(iter(loader)) == next(iter(loader))


def test_seeding_is_well_mixed():
    draws = []
    for i in range(2000):
        seed_everything(2**40, 3, i)
        draws.append((random.random(), np.random.rand(), torch.rand(()).item()))
    draws = np.array(draws)
    # means and correlations of 2000 uniform numbers: three standard deviations of what they are
    assert np.abs(draws.mean(0) - 0.5).max() < 4 * np.sqrt(1 / 12 / 2000)
    lagged = np.corrcoef(np.hstack([draws[1:], draws[:-1]]).T) - np.eye(6)
    assert np.abs(lagged).max() < 4 / np.sqrt(2000)
