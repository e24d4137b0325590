"""A tool's config: read, changed by the command line, checked."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.logging import print_log
from mmengine.registry import MODELS

from mmvit_ext.errors import UsageError

from .data_root import check_data, repoint
from .resume import latest_checkpoint, recorded_seed

SCOPES = ('mmpretrain', 'mmdet', 'mmseg')
# default hooks that mmengine registers by itself, and the only ones for which it takes None
MMENGINE_HOOKS = (
    'runtime_info',
    'timer',
    'sampler_seed',
    'logger',
    'param_scheduler',
    'checkpoint',
)


def require_file(field: str, path: str) -> None:
    """Checks that a file named on the command line exists.

    Raises:
        UsageError: Names the argument and where the file was looked for.
    """
    if not Path(path).is_file():
        raise UsageError(f'{field}={path}: no such file (looked for {Path(path).absolute()})')


def read_config(path: str) -> Config:
    """Reads a config.

    Raises:
        UsageError: If there is no such file, or its scope is none of mmpretrain, mmdet and mmseg.
    """
    require_file('config', path)
    cfg = Config.fromfile(path)
    scope = cfg.get('default_scope')
    if scope not in SCOPES:
        raise UsageError(
            f'default_scope={scope!r} in {path}: set it to one of {", ".join(SCOPES)}, the '
            'package whose models and data sets the config names'
        )
    return cfg


def run_config(args: argparse.Namespace, dataloaders: tuple[str, ...]) -> Config:
    """The config of a training or test run, with the command line's changes.

    Args:
        args: Parsed arguments of :func:`mmvit_ext.engine.cli.run_parser`.
        dataloaders: Those that the run uses; their data are checked.

    Returns:
        The config.

    Raises:
        UsageError: On any argument or data set that cannot work.
    """
    cfg = read_config(args.config)
    cfg.launcher = args.launcher
    if args.cfg_options:
        cfg.merge_from_dict(args.cfg_options)
    _drop_hooks(cfg)
    if args.data_root:
        repoint(cfg, args.data_root)
    if args.work_dir:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        cfg.work_dir = str(Path('work_dirs') / Path(args.config).stem)
    if args.seed is not None:
        cfg.randomness = {**cfg.get('randomness', {}), 'seed': args.seed}
    if not torch.cuda.is_available():
        cfg.merge_from_dict({'env_cfg.dist_cfg.backend': 'gloo'})
    check_data(cfg, dataloaders)
    return cfg


def _drop_hooks(cfg: Config) -> None:
    """Lets ``default_hooks.NAME=None`` turn off any hook, not only those of mmengine."""
    for name, hook in list((cfg.get('default_hooks') or {}).items()):
        if hook is None and name not in MMENGINE_HOOKS:
            del cfg.default_hooks[name]


def apply_train_options(cfg: Config, args: argparse.Namespace) -> None:
    """Applies ``--resume``, ``--amp`` and ``--auto-scale-lr`` to a config, in place.

    Raises:
        UsageError: If there is nothing to resume from, no GPU for this mixed precision, or no
            base batch size to scale from.
    """
    if args.resume:
        _resume(cfg, args.resume)
    if args.amp:
        _mix_precision(cfg, args.amp)
    if args.auto_scale_lr:
        if not cfg.get('auto_scale_lr', {}).get('base_batch_size'):
            raise UsageError(
                '--auto-scale-lr: the config has no auto_scale_lr.base_batch_size, the batch size '
                'its learning rate is for; set it with --cfg-options'
            )
        cfg.auto_scale_lr.enable = True


def _mix_precision(cfg: Config, kind: str) -> None:
    """Turns the optimizer wrapper to mixed precision; what else it is set to stays."""
    if not torch.cuda.is_available():
        raise UsageError(f'--amp={kind}: mixed precision training needs a GPU, and none is visible')
    wrapper = cfg.optim_wrapper
    wrapper.type = 'AmpOptimWrapper'
    if kind == 'fp16':
        wrapper.dtype = 'float16'
        wrapper.setdefault('loss_scale', 'dynamic')
        return
    # torch.cuda.is_bf16_supported() also counts older GPUs, which emulate it slower than float32
    if torch.version.hip is None and torch.cuda.get_device_capability()[0] < 8:
        raise UsageError(
            f'--amp=bf16: {torch.cuda.get_device_name()} has no bfloat16 arithmetic (compute '
            'capability 8.0 or higher has); use --amp fp16'
        )
    wrapper.dtype = 'bfloat16'
    # bfloat16 has the range of float32: nothing to scale; a scale of 1.0 would still wait for the
    # device in each step, to look for overflows
    wrapper.loss_scale = {'enabled': False}


def _resume(cfg: Config, checkpoint: str) -> None:
    cfg.resume = True
    if checkpoint == 'auto':
        cfg.load_from = latest_checkpoint(cfg.work_dir)
        if cfg.load_from is None:
            print_log(f'--resume: no checkpoint in {cfg.work_dir} yet, starting anew', 'current')
    elif not Path(checkpoint).is_file():
        raise UsageError(f'--resume={checkpoint}: no such file; give a checkpoint, or no value')
    else:
        cfg.load_from = checkpoint
    randomness = cfg.get('randomness') or {}
    if cfg.load_from and randomness.get('seed') is None:
        # the runner would find the seed itself, but only after the order of the data is drawn
        cfg.randomness = {**randomness, 'seed': recorded_seed(cfg.load_from)}


def check_channels(cfg: Config) -> None:
    """Checks that the neck, or a decode head without one, takes the channels of the backbone.

    Only for backbones of this package, which tell their channels; they are built without memory.

    Raises:
        UsageError: Names the field and both lists.
    """
    backbone = cfg.model.get('backbone', {})
    if not str(backbone.get('type', '')).startswith('mmvit_ext.'):
        return
    with torch.device('meta'):
        given = list(MODELS.build({**backbone, 'init_cfg': None}).out_channels)
    for part, wanted in _wanted_channels(cfg.model):
        if wanted != given:
            raise UsageError(
                f'model.{part}.in_channels={wanted}: {backbone.type} gives maps of {given} '
                'channels; set in_channels to that, or change arch or out_indices'
            )
        return


def _wanted_channels(model: Config) -> Iterator[tuple[str, list[int]]]:
    """Parts that take maps of several channels, in their order; a neck may be a list of necks."""
    for part in ('neck', 'decode_head'):
        given = model.get(part) or []
        for cfg in given if isinstance(given, list | tuple) else [given]:
            wanted = cfg.get('in_channels')
            if isinstance(wanted, list | tuple):
                yield part, list(wanted)


def check_batch_norm(cfg: Config) -> None:
    """Stops where a batch of one image would fail in a batch norm of 1x1 maps.

    UperNet's pooling branch of scale 1 has one value per channel and image; outside distributed
    training (where SyncBN joins the processes' images) a batch of one has no variance.

    Raises:
        UsageError: If training would stop at the first iteration for that reason.
    """
    head = cfg.model.get('decode_head') or {}
    pooled = 1 in (head.get('pool_scales') or ()) if isinstance(head, dict) else False
    batch_size = cfg.get('train_dataloader', {}).get('batch_size')
    norm = str((head.get('norm_cfg') or {}).get('type', '')) if pooled else ''
    if 'BN' in norm and batch_size == 1 and cfg.launcher == 'none':
        raise UsageError(
            f'train_dataloader.batch_size=1: decode_head.norm_cfg={norm} cannot normalise the 1x1 '
            'map of a single image; use a batch size of 2 or more, or '
            "decode_head.norm_cfg=dict(type='GN', num_groups=32)"
        )
