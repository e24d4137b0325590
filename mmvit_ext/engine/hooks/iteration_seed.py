"""Random numbers that depend on the iteration alone, so that a resumed run repeats itself."""

import random
from typing import Any

import numpy as np
import torch
from mmengine.hooks import Hook
from torch.utils.data import get_worker_info

from mmvit_ext.registry import HOOKS

# What the random numbers are for; each purpose has numbers of its own.
STEP, BATCH, EPOCH = range(3)


def seed_everything(*key: int) -> None:
    """Seeds Python's, numpy's and torch's global generators, torch's on all devices.

    Args:
        *key: Numbers >= 0 that name the stream; keys that differ by one give unrelated streams
            (``numpy.random.SeedSequence`` mixes them).
    """
    for_python, for_numpy, for_torch = np.random.SeedSequence(key).generate_state(3).tolist()
    random.seed(for_python)
    np.random.seed(for_numpy)
    torch.manual_seed(for_torch)


class SeededBatches:
    """Fetches the samples of a batch, with the random numbers that this batch has in the run.

    Torch's dataloader calls a dataset's ``__getitems__``, where there is one, for each batch, in
    the main process or in a worker. Workers take turns, so that a worker knows which batches are
    its own from its number and how many it has made.

    Attributes:
        upcoming: Number of the batch that the run needs next, counted over all epochs; a worker
            keeps the one from when it was started.
    """

    def __init__(self, dataset: Any, seed: int, rank: int, upcoming: int) -> None:
        self.dataset = dataset
        self.key = (seed, rank)
        self.upcoming = upcoming
        self._made = 0

    def __call__(self, indices: list[int]) -> list[Any]:
        """The samples at ``indices``."""
        seed_everything(*self.key, BATCH, self._number())
        if hasattr(type(self.dataset), '__getitems__'):
            return type(self.dataset).__getitems__(self.dataset, indices)
        return [self.dataset[i] for i in indices]

    def _number(self) -> int:
        worker = get_worker_info()
        if worker is None:
            return self.upcoming
        number = self.upcoming + self._made * worker.num_workers + worker.id
        self._made += 1
        return number


@HOOKS.register_module()
class IterationSeedHook(Hook):
    """Makes the random numbers of iteration i a function of the seed, the rank and i alone.

    A run that was killed and resumed then ends with exactly the weights of an unbroken one, if
    the device computes the same twice (on GPUs: ``randomness.deterministic=True``). What is drawn
    in the training step (drop path, dropout, mixup, samplers of RoIs) and what augments batch i
    depend on nothing drawn before, nor on validation or the number of workers. mmengine alone
    seeds workers anew at each start: all epochs then augment alike, and runs that were resumed
    (or have persistent workers) unlike unbroken ones. Persistent workers are restarted each epoch.

    It holds for epoch-based runs and for iteration-based ones with an ``InfiniteSampler``, whether
    mmengine moves the sampler on (onedl) or replays the dataloader (upstream, whose workers start
    before any hook and keep mmengine's seeds). It does not hold

    - for iteration-based runs with another sampler and workers, whose passes mmengine replays
      without telling hooks;
    - with ``randomness.diff_rank_seed``, under which mmengine draws the order of the data anew;
    - for what keeps earlier pictures or settings by itself, such as mmdet's ``CachedMosaic`` and
      ``BatchSyncRandomResize``;
    - with another batch size or number of processes than before.
    """

    # before all hooks that may draw random numbers themselves
    priority = 'VERY_HIGH'

    def before_train_epoch(self, runner: Any) -> None:
        """Seeds the epoch (an iteration-based run has one), and the batches from here on.

        Args:
            runner: The runner, its loop at the iteration that comes next.
        """
        seed_everything(runner.seed, runner.rank, EPOCH, runner.iter)
        loader = runner.train_dataloader
        self._batches = SeededBatches(loader.dataset, runner.seed, runner.rank, runner.iter)
        loader.dataset.__getitems__ = self._batches
        # persistent workers hold the numbering of their first epoch
        loader._iterator = None

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        """Seeds the training step; its batch has been fetched already.

        Args:
            runner: The runner.
            batch_idx: Number of the batch in its epoch; not used.
            data_batch: The batch; not used.
        """
        self._batches.upcoming = runner.iter + 1
        seed_everything(runner.seed, runner.rank, STEP, runner.iter)
