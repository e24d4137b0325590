"""What all backbones share: arguments, outputs, freezing, initialisation, layer depth."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
import torch.nn as nn
from mmengine.model import BaseModule
from mmengine.model.weight_init import initialize
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from ..layers import ResidualAttention, resize_grid

# parameters that start as tables do
TABLES = (
    'absolute_pos_embed',
    'cls_pos_embed',
    'cls_token',
    'rel_pos_h',
    'rel_pos_w',
    'relative_position_bias_table',
)


def resolve_arch(
    owner: str,
    arch: str | Mapping[str, Any],
    zoo: Mapping[str, Mapping[str, Any]],
    overrides: Mapping[str, Any],
) -> dict[str, Any]:
    """Turns an architecture's name or dict into its settings.

    Args:
        owner: Name of the backbone, for messages.
        arch: A name in ``zoo``, or a dict with the same keys.
        zoo: Settings by name; all entries have the same keys.
        overrides: Arguments that, where not None, replace the architecture's.

    Returns:
        The settings.

    Raises:
        ValueError: If the name is unknown, or keys of a dict are missing or unknown, or the
            per-stage settings differ in length.
    """
    wanted = set(next(iter(zoo.values())))
    if isinstance(arch, str):
        if arch not in zoo:
            raise ValueError(f"{owner}: arch='{arch}' is unknown; choose from {', '.join(zoo)}")
        settings = dict(zoo[arch])
    else:
        settings = dict(arch)
        if set(settings) != wanted:
            missing, unknown = sorted(wanted - set(settings)), sorted(set(settings) - wanted)
            raise ValueError(
                f'{owner}: arch needs the keys {sorted(wanted)}; missing {missing}, '
                f'unknown {unknown}'
            )
    settings.update({key: value for key, value in overrides.items() if value is not None})
    lengths = {k: len(v) for k, v in settings.items() if isinstance(v, Sequence)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f'{owner}: per-stage settings differ in length: {lengths}')
    return settings


class Backbone(BaseModule):
    """What all backbones share: outputs, freezing, checkpointing, initialisation.

    A backbone runs through units: the stages of a pyramid, or the blocks of a plain transformer.
    Its outputs and its frozen part are counted in them. A subclass builds ``patch_embed``, the
    units as a module list under the name :attr:`units` and calls :meth:`_add_output_norms`, then
    :meth:`_freeze`. Units behind the last output are never built, so that every trainable
    parameter has a gradient.

    Args:
        dims: Channels of each unit of the architecture.
        out_indices: Units whose maps are returned, ascending; -1 is the last one.
        frozen_stages: -1 freezes nothing, 0 the patch embedding, k the patch embedding and the
            first k units with their output norms (mmdet's meaning).
        norm_eval: Keeps batch norms in eval mode while training.
        with_cp: Recomputes each block in the backward pass to save memory.
        init_cfg: mmengine's initialisation config. ``Pretrained`` is taken as
            ``mmvit_ext.Pretrained``, which knows foreign checkpoints and checks what arrived.
    """

    units = 'stages'
    # layers whose weights start from a truncated normal; the others keep torch's start
    trunc_normal_layers: tuple[type[nn.Module], ...] = (nn.Linear,)

    def __init__(
        self,
        dims: Sequence[int],
        out_indices: int | Sequence[int],
        frozen_stages: int,
        norm_eval: bool,
        with_cp: bool,
        init_cfg: dict | None,
    ) -> None:
        super().__init__(init_cfg=init_cfg)
        self.out_indices = self._checked_out_indices(out_indices, len(dims))
        self.dims = tuple(dims)[: self.out_indices[-1] + 1]
        if not -1 <= frozen_stages <= len(self.dims):
            raise ValueError(
                f'frozen_stages={frozen_stages}: this backbone has {len(self.dims)} {self.units}; '
                f'choose -1 (none), 0 (patch embedding) or up to {len(self.dims)}'
            )
        self.frozen_stages = frozen_stages
        # the gate that all blocks share, where there is one
        self.residual: ResidualAttention | None = None
        self.norm_eval = norm_eval
        self.with_cp = with_cp

    def _checked_out_indices(self, out_indices: int | Sequence[int], count: int) -> tuple[int, ...]:
        if isinstance(out_indices, int):
            out_indices = (out_indices,)
        indices = tuple(i + count if i < 0 else i for i in out_indices)
        valid = all(0 <= i < count for i in indices)
        if not indices or not valid or list(indices) != sorted(set(indices)):
            raise ValueError(
                f'out_indices={tuple(out_indices)}: give ascending {self.units} out of '
                f'0..{count - 1} (or -1 for the last)'
            )
        return indices

    @property
    def out_channels(self) -> tuple[int, ...]:
        """Channels of the returned maps: what a neck's ``in_channels`` has to be."""
        return tuple(self.dims[i] for i in self.out_indices)

    def _reduction(self, unit: int) -> int:
        """Stride of a unit's map, in pixels of the image."""
        raise NotImplementedError

    @property
    def feature_info(self) -> list[dict[str, Any]]:
        """Per unit: ``num_chs``, ``reduction`` (stride in pixels) and ``module`` (its name)."""
        return [
            {'num_chs': dim, 'reduction': self._reduction(i), 'module': f'{self.units}.{i}'}
            for i, dim in enumerate(self.dims)
        ]

    def _add_output_norms(self, make: Callable[[int], nn.Module]) -> None:
        for i in self.out_indices:
            self.add_module(f'norm{i}', make(self.dims[i]))

    def _add_absolute_pos_embed(
        self, dim: int, img_size: int | Sequence[int], patch: int, field: str = 'img_size'
    ) -> None:
        """Adds a learned absolute embedding of an image's patches, (1, C, H / patch, W / patch).

        Args:
            dim: Channels.
            img_size: Image side, or height and width, that the table is for, in pixels.
            patch: Stride of the patches, in pixels.
            field: Name of the size's argument, for messages.

        Raises:
            ValueError: If ``img_size`` is neither a side nor a pair.
        """
        height, width = image_size(img_size, field)
        grid = (-(-height // patch), -(-width // patch))
        self.absolute_pos_embed = nn.Parameter(torch.zeros(1, dim, *grid))
        self.register_load_state_dict_pre_hook(_fit_absolute_pos_embed)

    def _with_position(self, x: Tensor) -> Tensor:
        """Adds the absolute embedding, resampled to the map: (N, H, W, C) to the same."""
        position = resize_grid(self.absolute_pos_embed, tuple(x.shape[1:3]))
        return x + position.permute(0, 2, 3, 1).to(x.dtype)

    def _run(self, block: nn.Module, *args: Any) -> Any:
        """Calls a block, checkpointed where asked for."""
        if self.with_cp and torch.is_grad_enabled():
            return checkpoint(block, *args, use_reentrant=False)
        return block(*args)

    def _frozen_modules(self) -> list[nn.Module]:
        if self.frozen_stages < 0:
            return []
        norms = [getattr(self, f'norm{i}') for i in self.out_indices if i < self.frozen_stages]
        units = getattr(self, self.units)[: self.frozen_stages]
        return [self.patch_embed, *units, *norms]

    def _frozen_parameters(self) -> list[nn.Parameter]:
        """Parameters of the backbone itself that are frozen, beside whole modules.

        Tokens and position tables belong to the patch embedding; a shared gate is frozen as soon
        as a unit that uses it is.
        """
        frozen = list(self.parameters(recurse=False)) if self.frozen_stages >= 0 else []
        if self.frozen_stages >= 1 and self.residual is not None:
            frozen.extend(self.residual.parameters())
        return frozen

    def _freeze(self) -> None:
        for module in self._frozen_modules():
            module.eval()
            module.requires_grad_(False)
        for parameter in self._frozen_parameters():
            parameter.requires_grad_(False)

    def train(self, mode: bool = True) -> 'Backbone':
        """Sets training mode; frozen parts stay in eval mode, as do batch norms if asked for."""
        super().train(mode)
        self._freeze()
        if mode and self.norm_eval:
            for module in self.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
        return self

    def init_weights(self) -> None:
        """Initialises as the authors do, then as ``init_cfg`` says.

        Linear layers, in some families convolutions too, tokens and position tables: normal,
        truncated, std 0.02; biases of these layers 0.
        """
        if self.is_init:
            return
        cfgs = self.init_cfg or []
        cfgs = [dict(cfg) for cfg in ([cfgs] if isinstance(cfgs, dict) else cfgs)]
        for module in self.modules():
            if isinstance(module, self.trunc_normal_layers):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for name, parameter in self.named_parameters():
            if name.split('.')[-1] in TABLES:
                nn.init.trunc_normal_(parameter, std=0.02)
        for cfg in cfgs:
            if cfg['type'] == 'Pretrained':
                cfg['type'] = 'mmvit_ext.Pretrained'
        if cfgs:
            initialize(self, cfgs)
        self.is_init = True

    def begin_plain(self, arrived: Collection[str]) -> None:
        """Starts what plain weights lack so that the network computes what the plain one does.

        Gates start at 1, the paths of augmented shortcuts at 0.

        Args:
            arrived: Names of the parameters that were loaded; parts that hold any are left alone.

        Raises:
            ValueError: If a part cannot begin without effect; names the setting to change.
        """
        for name, module in self.named_modules():
            if module is self or not hasattr(module, 'begin_plain'):
                continue
            if not any(key.startswith(f'{name}.') for key in arrived):
                module.begin_plain()


class Stage(nn.Module):
    """The blocks of a stage and what brings its map to the next one.

    Args:
        blocks: The blocks.
        downsample: What follows them; None in the last stage.
    """

    def __init__(self, blocks: Sequence[nn.Module], downsample: nn.Module | None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.downsample = downsample


class PyramidBackbone(Backbone):
    """Base of backbones that give maps at strides 4, 8, 16 and 32.

    Its units are stages, each with ``blocks`` and a ``downsample`` that may be None.

    Args:
        dims: Channels of each stage of the architecture.
        depths: Blocks of each stage of the architecture.
        *args: Those of :class:`Backbone` behind ``dims``.
    """

    def __init__(self, dims: Sequence[int], depths: Sequence[int], *args: Any) -> None:
        super().__init__(dims, *args)
        self.depths = tuple(depths)

    def _reduction(self, unit: int) -> int:
        return 4 * 2**unit

    def _output(self, i: int, x: Tensor) -> Tensor:
        """Map i through its own norm, as (N, C, H, W); the running map stays as it is."""
        return getattr(self, f'norm{i}')(x).contiguous()

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """The depth of a parameter, for layer-wise learning rates.

        Args:
            param_name: Full name of the parameter.
            prefix: What stands before the backbone's own names, e.g. ``'backbone.'``.

        Returns:
            The depth, 0 for the patch embedding up to ``num_layers - 1`` for output norms and all
            behind the backbone; and ``num_layers``, the number of blocks + 2.
        """
        num_layers = sum(self.depths) + 2
        if not param_name.startswith(prefix):
            return num_layers - 1, num_layers
        parts = param_name[len(prefix) :].split('.')
        if parts[0] in (*TABLES, 'patch_embed'):
            return 0, num_layers
        if parts[0] != 'stages':
            return num_layers - 1, num_layers
        stage = int(parts[1])
        if parts[2] == 'blocks':
            return sum(self.depths[:stage]) + int(parts[3]) + 1, num_layers
        return sum(self.depths[: stage + 1]), num_layers


def image_size(size: int | Sequence[int], field: str = 'img_size') -> tuple[int, int]:
    """Height and width, in pixels, of a side or a pair.

    Args:
        size: A side, or height and width.
        field: Name of the argument, for messages.

    Raises:
        ValueError: If ``size`` is neither.
    """
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) != 2 or min(pair) < 1:
        raise ValueError(f'{field}={size}: give a side or (height, width), in pixels')
    return pair


def _fit_absolute_pos_embed(model: Backbone, state_dict: dict, prefix: str, *_) -> None:
    """Before loading: resamples an absolute position embedding of another image size."""
    key = prefix + 'absolute_pos_embed'
    table = state_dict.get(key)
    if table is not None and table.ndim == 4:
        state_dict[key] = resize_grid(table, tuple(model.absolute_pos_embed.shape[2:]))


def drop_path_rates(rate: float, depths: Sequence[int]) -> list[list[float]]:
    """Stochastic depth rates rising linearly from 0 over all blocks, one list a stage."""
    # plain numbers: a model can then be built on the meta device
    rates = [rate * i / max(sum(depths) - 1, 1) for i in range(sum(depths))]
    return [rates[sum(depths[:i]) : sum(depths[: i + 1])] for i in range(len(depths))]
