"""Training and testing of any config: mmengine's runner does the work."""

import argparse
import os

from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from .checkpoint_file import trust_mmengine_checkpoints
from .class_counts import check_classes
from .config import apply_train_options, check_batch_norm, check_channels, require_file, run_config
from .distributed import check_launcher, drop_sharding, leave_cpu, prepare_cpu


def train(args: argparse.Namespace) -> None:
    """Trains as ``tools/train.py`` was told to.

    Raises:
        UsageError: On an argument, config value or data set that cannot work.
    """
    cfg = run_config(args, ('train_dataloader', 'val_dataloader'))
    apply_train_options(cfg, args)
    check_channels(cfg)
    check_batch_norm(cfg)
    check_classes(cfg)
    _build_runner(cfg).train()
    leave_cpu()


def test(args: argparse.Namespace) -> None:
    """Evaluates as ``tools/test.py`` was told to.

    Raises:
        UsageError: On an argument, config value or data set that cannot work.
    """
    require_file('checkpoint', args.checkpoint)
    cfg = run_config(args, ('test_dataloader',))
    drop_sharding(cfg)
    cfg.load_from = args.checkpoint
    # the checkpoint holds the backbone too: nothing needs to be fetched
    if 'backbone' in cfg.model:
        cfg.model.backbone.init_cfg = None
    _build_runner(cfg).test()
    leave_cpu()


def _build_runner(cfg) -> Runner:
    check_launcher(cfg)
    prepare_cpu(cfg)
    trust_mmengine_checkpoints()
    # Without a display OpenCV's and matplotlib's windows cannot open; no tool needs one.
    os.environ.setdefault('MPLBACKEND', 'Agg')
    return RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)
