"""Learning rates that fall from the head to the patch embedding, for any model with a backbone."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

import torch.nn as nn
from mmengine.logging import print_log
from mmengine.optim import DefaultOptimWrapperConstructor

from mmvit_ext.registry import OPTIM_WRAPPER_CONSTRUCTORS

Depth = Callable[[str, str], tuple[int, int]]
# mmpretrain's word and mmdet's
RATE_KEYS = ('layer_decay_rate', 'decay_rate')


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class LayerDecayOptimWrapperConstructor(DefaultOptimWrapperConstructor):
    """Layer-wise learning rate decay for classifiers, detectors, segmentors and bare backbones.

    The learning rate of a parameter is multiplied by ``rate ** (num_layers - 1 - depth)``, as in
    BEiT (arXiv 2106.08254); depth and number of layers come from the backbone's
    ``get_layer_depth(name, prefix)``, and all behind the backbone has factor 1. Everything else
    in ``paramwise_cfg`` keeps mmengine's meaning; a ``lr_mult`` multiplies with the factor.
    Parameters with equal settings share a group, which keeps optimizers fast.

    Args:
        optim_wrapper_cfg: Config of the wrapper and its optimizer.
        paramwise_cfg: mmengine's, and ``layer_decay_rate`` (or ``decay_rate``), in (0, 1].

    Raises:
        ValueError: If the rate is missing or out of range.

    Example:
        >>> optim_wrapper = dict(
        ...     type='OptimWrapper',
        ...     constructor='mmvit_ext.LayerDecayOptimWrapperConstructor',
        ...     optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.05),
        ...     paramwise_cfg=dict(layer_decay_rate=0.8, norm_decay_mult=0.0),
        ... )
    """

    def __init__(self, optim_wrapper_cfg: dict, paramwise_cfg: dict | None = None) -> None:
        self.rate = _rate(paramwise_cfg or {})
        super().__init__(optim_wrapper_cfg, paramwise_cfg)
        if self.base_lr is None:
            raise ValueError('optimizer.lr: missing; layer-wise rates are shares of it')

    def add_params(
        self, params: list[dict], module: nn.Module, prefix: str = '', **kwargs: Any
    ) -> None:
        """Adds the parameters of ``module`` to the groups.

        Args:
            params: The groups; changed in place.
            module: The model at the first call, its children in mmengine's recursion.
            prefix: Name of ``module`` in the model.
            **kwargs: What mmengine's recursion hands on.

        Raises:
            ValueError: If the model has no backbone that tells the depth of a parameter.
        """
        super().add_params(params, module, prefix=prefix, **kwargs)
        if prefix:
            return
        depth, backbone_prefix = _depth_of(module)
        names = {id(p): name for name, p in module.named_parameters()}
        self._report_unmatched(names.values())
        for group in params:
            # mmengine makes one group a parameter
            layer, layers = depth(names[id(group['params'][0])], backbone_prefix)
            scale = self.rate ** (layers - 1 - layer)
            group['lr'] = group.get('lr', self.base_lr) * scale
            group['lr_scale'] = scale
        params[:] = _merged(params)

    def _report_unmatched(self, names: Iterable[str]) -> None:
        # mmengine looks for a key behind the dot, too
        names = [f'.{name}' for name in names]
        keys = self.paramwise_cfg.get('custom_keys', {})
        unmatched = [key for key in keys if not any(key in name for name in names)]
        if unmatched:
            print_log(
                f'paramwise_cfg.custom_keys: {", ".join(unmatched)}: in the name of no parameter, '
                'so without effect',
                logger='current',
                level=logging.WARNING,
            )


def _rate(settings: dict) -> float:
    """The rate, under either of its names."""
    given = {key: settings[key] for key in RATE_KEYS if key in settings}
    if len(set(given.values())) != 1:
        found = ', '.join(f'{key}={value}' for key, value in given.items()) or 'none'
        raise ValueError(f'paramwise_cfg: give one layer_decay_rate, such as 0.8; found {found}')
    ((key, rate), *_) = given.items()
    if not 0 < rate <= 1:
        raise ValueError(f'paramwise_cfg.{key}={rate}: give a rate in (0, 1]; 1 decays nothing')
    return rate


def _depth_of(model: nn.Module) -> tuple[Depth, str]:
    """The function that tells depths, and the prefix of its names."""
    backbone = getattr(model, 'backbone', None)
    if hasattr(backbone, 'get_layer_depth'):
        return backbone.get_layer_depth, 'backbone.'
    if hasattr(model, 'get_layer_depth'):
        return model.get_layer_depth, ''
    owner = type(backbone if backbone is not None else model).__name__
    raise ValueError(
        f'{owner} has no get_layer_depth(name, prefix), which layer-wise rates need; choose a '
        "backbone that has it, or mmengine's DefaultOptimWrapperConstructor"
    )


def _merged(groups: list[dict]) -> list[dict]:
    """Joins groups with equal settings, in the order in which they come."""
    merged: dict[tuple, dict] = {}
    for group in groups:
        settings = {key: value for key, value in group.items() if key != 'params'}
        key = tuple(sorted((name, repr(value)) for name, value in settings.items()))
        merged.setdefault(key, {'params': [], **settings})['params'].extend(group['params'])
    return list(merged.values())
