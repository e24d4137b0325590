"""Stops a run whose loss or weights are no longer finite."""

import math
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper

from mmvit_ext.errors import UsageError
from mmvit_ext.registry import HOOKS

from ..distributed import SHARDED_NAME


@HOOKS.register_module()
class FiniteLossHook(Hook):
    """Stops training at the first loss that is NaN or infinite, before anything more is saved.

    mmengine tells hooks the losses after the optimizer's step: the weights in memory are damaged
    by then, those on disk are not, as this hook runs before the one that saves. A loss can be
    finite while the gradient is not, and in distributed training another process may have seen
    the NaN; weights are therefore checked once more whenever a checkpoint is about to be saved.

    An error in one process is enough: torch's launchers then end the others.

    Losses are read where mmengine's ``RuntimeInfoHook`` has just put them as plain numbers, so no
    iteration waits for the device once more. ``default_hooks.finite_loss=None`` turns the check
    off in our tools (mmengine itself takes None only for hooks that it has by default).
    """

    # after RuntimeInfoHook (VERY_HIGH), before all that log or save
    priority = 'HIGH'

    def __init__(self) -> None:
        self._good: str | None = None

    def after_train_iter(
        self,
        runner: Any,
        batch_idx: int,
        data_batch: Any = None,
        outputs: dict[str, Any] | None = None,
    ) -> None:
        """Checks the losses of an iteration.

        Args:
            runner: The runner.
            batch_idx: Number of the batch in its epoch; not used.
            data_batch: The batch; not used.
            outputs: What the model's ``train_step`` gave: losses and other figures by name.

        Raises:
            UsageError: Names the iteration, the losses, the last good checkpoint and what to do.
        """
        # remembered here, as CheckpointHook names its next file before that is written
        self._good = runner.message_hub.runtime_info.get('last_ckpt')
        bad = [
            f'{name}={value}'
            for name, value in _losses(runner, outputs or {}).items()
            if not math.isfinite(value)
        ]
        if bad:
            raise UsageError(
                f'loss is not finite at iteration {runner.iter + 1} (epoch {runner.epoch + 1}): '
                f'{", ".join(bad)}; {self._advice()}'
            )

    def before_save_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        """Checks the weights that are about to be saved.

        Args:
            runner: The runner.
            checkpoint: What will be saved, its tensors on the CPU.

        Raises:
            UsageError: Names the iteration, some of the weights, and the last good checkpoint.
        """
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model
        # parameters only: a buffer may hold -inf on purpose, as masks do
        parameters = {name.replace(SHARDED_NAME, '') for name, _ in model.named_parameters()}
        bad = [
            name
            for name, value in checkpoint.get('state_dict', {}).items()
            # sharded tensors of other strategies know no such test
            if name in parameters and type(value) is torch.Tensor and not value.isfinite().all()
        ]
        if bad:
            more = f' and {len(bad) - 3} more' if len(bad) > 3 else ''
            raise UsageError(
                f'weights are not finite after iteration {checkpoint["meta"]["iter"]}: '
                f'{", ".join(bad[:3])}{more}; they are not saved; {self._advice()}'
            )

    def _advice(self) -> str:
        # mmengine takes the learning rate of a resumed run from the checkpoint
        lower = 'start anew with a lower optim_wrapper.optimizer.lr'
        clip = 'optim_wrapper.clip_grad.max_norm=1.0'
        if self._good is None:
            return f'no checkpoint has been saved yet: {lower}, or with {clip}'
        return (
            f'last good checkpoint: {self._good}; go on from it with --resume and --cfg-options '
            f'{clip}, or {lower} (a resumed run keeps its own)'
        )


def _losses(runner: Any, outputs: dict[str, Any]) -> dict[str, float]:
    """Those outputs that mmengine counts as losses: each with 'loss' in its name."""
    history = runner.message_hub.log_scalars
    losses = {}
    for name, value in outputs.items():
        if 'loss' in name:
            seen = history.get(f'train/{name}')
            losses[name] = float(seen.current()) if seen else torch.as_tensor(value).item()
    return losses
