"""Fully sharded training: mmengine's strategy, with what it gets wrong put right."""

from typing import Any

import torch
import torch.nn as nn
from mmengine._strategy import FSDPStrategy as MMEngineFSDPStrategy
from mmengine.optim import AmpOptimWrapper, OptimWrapper, build_optim_wrapper
from torch import Tensor
from torch.distributed.fsdp import FullyShardedDataParallel

from mmvit_ext.models.backbones.mvit import MViTBlock
from mmvit_ext.models.backbones.shiftvit import ShiftBlock
from mmvit_ext.models.layers import TransformerBlock
from mmvit_ext.registry import FUNCTIONS, STRATEGIES

from .distributed import SHARDED_NAME

BLOCKS = (TransformerBlock, ShiftBlock, MViTBlock)


@FUNCTIONS.register_module()
def wrap_blocks(module: nn.Module, recurse: bool, nonwrapped_numel: int) -> bool:
    """Policy of ``auto_wrap_policy``: each block of our backbones is gathered by itself.

    All else (patch embedding, what joins stages, a gate that all blocks share, necks and heads)
    belongs to the outermost unit, which is gathered during the whole iteration: it may be used
    anywhere, or not at all in an image without objects.

    Args:
        module: A module of the model.
        recurse: Whether torch asks if to look into the module, rather than to wrap it.
        nonwrapped_numel: Parameters in it that are in no unit yet; not used.

    Returns:
        Whether to.
    """
    return recurse or isinstance(module, BLOCKS)


@STRATEGIES.register_module()
class FSDPStrategy(MMEngineFSDPStrategy):
    """mmengine's ``FSDPStrategy`` for ``FlexibleRunner``, whose checkpoints are plain ones.

    The state dict is gathered in the first process and saved as that of a model that was never
    wrapped; optimizer states are saved by parameter name. Beside that, four things differ from
    mmengine 0.10's:

    * The optimizer's groups are made from the model before it is wrapped. After that, names have
      :data:`SHARDED_NAME` in them, and ``custom_keys`` such as ``blocks.0.attn`` would be missed.
    * ``clip_grad`` clips by the norm over all shards, not each process by the norm of its own.
    * Optimizer states are given to torch by keyword: torch 2.1 changed the order of arguments.
    * Without a GPU the model stays on the CPU (gloo), which is for tests.

    Args:
        **kwargs: mmengine's arguments, but ``state_dict_cfg``.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(state_dict_cfg='full', **kwargs)
        if not torch.cuda.is_available():
            # the copy to the CPU keeps torch from writing one state (AdamW's squares) over another
            # (its means), and is none where they are on the CPU; without it torch copies
            self.optim_state_dict_config.offload_to_cpu = False

    def prepare(
        self, model: nn.Module | dict, *, optim_wrapper: dict | None = None, **kwargs: Any
    ) -> Any:
        """Builds and wraps what is trained or tested.

        Args:
            model: The model or its config.
            optim_wrapper: Config of the optimizer wrapper; None to test.
            **kwargs: mmengine's other arguments.

        Returns:
            The components, as mmengine's.
        """
        if not self._prepared and isinstance(optim_wrapper, dict):
            model = self.build_model(model)
            if optim_wrapper.get('type') in ('AmpOptimWrapper', AmpOptimWrapper):
                optim_wrapper.setdefault('use_fsdp', True)
            optim_wrapper = build_optim_wrapper(model, optim_wrapper)
        return super().prepare(model, optim_wrapper=optim_wrapper, **kwargs)

    def build_optim_wrapper(self, optim_wrapper: OptimWrapper, model: nn.Module) -> OptimWrapper:
        """Turns a wrapper that was built for the plain model to the sharded parameters.

        Args:
            optim_wrapper: The wrapper; its optimizer has not stepped yet.
            model: The wrapped model.

        Returns:
            The same wrapper.
        """
        sharded = {name.replace(SHARDED_NAME, ''): p for name, p in model.named_parameters()}
        for group in optim_wrapper.optimizer.param_groups:
            group['params'] = [sharded[self.id_to_name[id(p)]] for p in group['params']]
        if getattr(optim_wrapper, 'clip_func', None) is nn.utils.clip_grad_norm_:
            optim_wrapper.clip_func = _NormClip(model)
        return optim_wrapper

    def optim_state_dict(self) -> dict[str, Any]:
        """The optimizer's states by parameter name in the first process, empty in the others."""
        states = FullyShardedDataParallel.optim_state_dict(self.model, self.optim_wrapper.optimizer)
        own = self.optim_wrapper.state_dict()
        return {**{k: v for k, v in own.items() if k not in ('state', 'param_groups')}, **states}

    def load_optim_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads what :meth:`optim_state_dict` gave, in the first process.

        Args:
            state_dict: The states.
        """
        parts = {key: state_dict.pop(key) for key in ('state', 'param_groups')}
        local = FullyShardedDataParallel.optim_state_dict_to_load(
            model=self.model, optim=self.optim_wrapper.optimizer, optim_state_dict=parts
        )
        self.optim_wrapper.load_state_dict({**state_dict, **local})

    def _wrap_model(self, model: nn.Module) -> nn.Module:
        if not torch.cuda.is_available():
            # mmengine would name the CUDA device of the process
            self.model_wrapper = {**(self.model_wrapper or {}), 'device_id': torch.device('cpu')}
        return super()._wrap_model(model)


class _NormClip:
    """In the place of torch's clip_grad_norm_, for parameters that are sharded."""

    def __init__(self, model: FullyShardedDataParallel) -> None:
        self.model = model

    def __call__(self, _: list[Tensor], max_norm: float, norm_type: float = 2.0) -> Tensor:
        return self.model.clip_grad_norm_(max_norm, norm_type)
