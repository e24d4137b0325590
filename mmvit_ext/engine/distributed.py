"""Several processes: what a config needs to run in them, on GPUs or, for trials, on the CPU."""

import datetime
import gc

import torch
import torch.distributed as dist
from mmengine.config import Config

from mmvit_ext.errors import UsageError

FSDP = 'mmvit_ext.FSDPStrategy'
# what torch puts into the names of the parameters of a sharded module
SHARDED_NAME = '_fsdp_wrapped_module.'


def check_launcher(cfg: Config) -> None:
    """Checks that the launcher suits the machine and the strategy.

    Raises:
        UsageError: If sharding is asked for without processes to share out to, or a cluster's
            launcher without a GPU.
    """
    strategy = (cfg.get('strategy') or {}).get('type')
    if strategy == FSDP and cfg.launcher == 'none':
        raise UsageError(
            f'strategy.type={FSDP}: shares the model out over processes, and there is one; start '
            'with tools/dist_train.sh CONFIG GPUS, or leave out _base_/strategies/fsdp.py'
        )
    if cfg.launcher not in ('none', 'pytorch') and not torch.cuda.is_available():
        raise UsageError(
            f'--launcher={cfg.launcher}: needs GPUs, and none is visible; on the CPU start with '
            'tools/dist_train.sh, which uses --launcher pytorch'
        )


def prepare_cpu(cfg: Config) -> None:
    """Lets several processes run without a GPU, by gloo; with one, or one process, does nothing.

    mmengine names a CUDA device when it joins the processes and when it wraps the model.

    Args:
        cfg: The config, changed in place. The processes are joined here.
    """
    if cfg.launcher != 'pytorch' or torch.cuda.is_available():
        return
    if 'runner_type' not in cfg:
        # mmengine's own settings, where the config has none
        wrapper = cfg.get('model_wrapper_cfg') or {
            'type': 'MMDistributedDataParallel',
            'broadcast_buffers': False,
            'find_unused_parameters': cfg.get('find_unused_parameters', False),
        }
        cfg.model_wrapper_cfg = {**wrapper, 'device_ids': None}
    if not dist.is_initialized():
        settings = dict(cfg.env_cfg.dist_cfg)
        if 'timeout' in settings:
            settings['timeout'] = datetime.timedelta(seconds=settings['timeout'])
        dist.init_process_group(**settings)


def leave_cpu() -> None:
    """Ends what :func:`prepare_cpu` began; call it when the runner is gone, before the process is.

    A thread of gloo that lets go of a last tensor while Python shuts down aborts the process.
    Destroying the group waits for its threads, if nothing else holds the group.
    """
    if dist.is_initialized() and dist.get_backend() == 'gloo':
        # runners hold themselves in circles, and their models the group
        gc.collect()
        dist.barrier()
        dist.destroy_process_group()


def drop_sharding(cfg: Config) -> None:
    """Makes a config of sharded training an ordinary one, in place: its checkpoints are."""
    if (cfg.get('strategy') or {}).get('type') == FSDP:
        cfg.pop('strategy')
        cfg.pop('runner_type')
