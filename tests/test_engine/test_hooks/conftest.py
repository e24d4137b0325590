"""Runs of a toy model that draws random numbers wherever a real one does."""

import itertools
import random

import numpy as np
import pytest
import torch
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import Dataset

from mmvit_ext.engine.checkpoint_file import trust_mmengine_checkpoints

RUNS = itertools.count()


class Noisy(Dataset):
    """Ten samples of four numbers, each fetched with noise of all three generators."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        noise = torch.tensor([random.random(), np.random.rand(), *torch.rand(2)])
        return {'x': torch.arange(4.0) / 4 + i / 10 + noise}


class Toy(BaseModel):
    """Regression through a dropout; ``spoil`` makes a loss NaN or weights infinite."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc = torch.nn.Linear(4, 4)
        self.register_buffer('mask', torch.tensor([0.0, -torch.inf]))
        self.spoil = None
        self.calls = 0

    def forward(self, x, mode='tensor'):
        x = torch.stack(x)
        y = self.fc(torch.nn.functional.dropout(x, 0.5, mode == 'loss'))
        if mode != 'loss':
            return [y.mean()]
        self.calls += 1
        loss = (y - x).square().mean()
        if self.spoil:
            loss = self.spoil(self, loss)
        return {'loss_a': loss, 'loss_b': torch.ones(()), 'acc': loss.detach() / 0}


class Score(BaseMetric):
    """Scores 1, 2, 3, ... at each validation, and draws random numbers on the way."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def process(self, data_batch, data_samples):
        random.random(), np.random.rand(), torch.rand(3)
        self.results.append(0)

    def compute_metrics(self, results):
        self.count += 1
        return {'score': float(self.count)}


class StopAt(Hook):
    """Ends the run, as a kill does, once an iteration has been done and saved."""

    priority = 'LOWEST'

    def __init__(self, iteration):
        self.iteration = iteration

    def after_train_iter(self, runner, *args, **kwargs):
        if runner.iter + 1 == self.iteration:
            raise KeyboardInterrupt


@pytest.fixture
def toy(tmp_path):
    """Makes a runner of the toy model: five iterations an epoch."""
    trust_mmengine_checkpoints()

    def make(
        *, work='w', epochs=None, iters=None, workers=0, persistent=False, sampler=None,
        hooks=None, stop=None, loop='IterBasedTrainLoop', seed=3, resume=False, **checkpoint,
    ):  # fmt: skip
        if epochs:
            train = dict(type='EpochBasedTrainLoop', max_epochs=epochs, val_interval=2)
        else:
            train = dict(type=loop, max_iters=iters, val_interval=4)
        loader = dict(num_workers=workers, persistent_workers=persistent)
        sampler = sampler or ('DefaultSampler' if epochs else 'InfiniteSampler')
        checkpoint = dict(type='mmvit_ext.CheckpointHook', by_epoch=bool(epochs), **checkpoint)
        seeds = dict(iteration_seed=dict(type='mmvit_ext.IterationSeedHook'))
        return Runner(
            model=Toy(),
            work_dir=str(tmp_path / work),
            train_dataloader=dict(
                batch_size=2, dataset=Noisy(), sampler=dict(type=sampler, shuffle=True), **loader
            ),
            train_cfg=train,
            optim_wrapper=dict(optimizer=dict(type='AdamW', lr=0.05)),
            val_dataloader=dict(
                batch_size=5, dataset=Noisy(), sampler=dict(type='DefaultSampler', shuffle=False)
            ),
            val_cfg=dict(),
            val_evaluator=Evaluator(Score()),
            default_hooks=dict(checkpoint=checkpoint, **(seeds if hooks is None else hooks)),
            custom_hooks=[StopAt(stop)] if stop else None,
            default_scope='mmengine',
            experiment_name=f'toy_{next(RUNS)}',
            randomness=dict(seed=seed),
            resume=resume,
            log_level='ERROR',
        )

    yield make
    torch.serialization.clear_safe_globals()
