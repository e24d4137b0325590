"""Learning rates that fall from the head to the patch embedding, for any model with a backbone."""

import logging
from collections import Counter
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
        ValueError: If the rate is missing or out of range, or the optimizer has no ``lr``.

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
            ValueError: If the model has no backbone that tells the depth of a parameter, or a
                parameter stands under two names and ``bypass_duplicate`` is not set.
        """
        if prefix:
            super().add_params(params, module, prefix=prefix, **kwargs)
            return
        depth, backbone_prefix = _depth_of(module)
        names = {id(p): name for name, p in module.named_parameters()}
        self._report_unmatched(names.values())
        super().add_params(params, module, prefix=prefix, **kwargs)
        _refuse_shared(params, names)
        for group in params:
            # mmengine makes one group a parameter
            layer, layers = depth(names[id(group['params'][0])], backbone_prefix)
            self._scale(group, self.rate ** (layers - 1 - layer))
        params[:] = _merged(params)

    def _scale(self, group: dict, scale: float) -> None:
        # what mmengine leaves to the optimizer's defaults is spelled out: equal groups look equal
        group['lr'] = group.get('lr', self.base_lr) * scale
        group['lr_scale'] = scale
        if self.base_wd is not None:
            group.setdefault('weight_decay', self.base_wd)

    def _report_unmatched(self, names: Iterable[str]) -> None:
        # as mmengine spells names: a dot stands before parameters of the model itself, only
        names = [name if '.' in name else f'.{name}' for name in names]
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
    for key, rate in given.items():
        if not isinstance(rate, int | float) or not 0 < rate <= 1:
            raise ValueError(
                f'paramwise_cfg.{key}={rate!r}: give a rate in (0, 1]; 1 decays nothing'
            )
    if len(set(given.values())) != 1:
        found = ', '.join(f'{key}={value}' for key, value in given.items()) or 'none'
        raise ValueError(f'paramwise_cfg: give one layer_decay_rate, such as 0.8; found {found}')
    return next(iter(given.values()))


def _depth_of(model: nn.Module) -> tuple[Depth, str]:
    """The function that tells depths, and the prefix of its names."""
    backbone = getattr(model, 'backbone', None)
    owner, prefix = (model, '') if backbone is None else (backbone, 'backbone.')
    if not hasattr(owner, 'get_layer_depth'):
        raise ValueError(
            f'{type(owner).__name__} has no get_layer_depth(name, prefix), which layer-wise rates '
            "need; choose a backbone that has it, or mmengine's DefaultOptimWrapperConstructor"
        )
    return owner.get_layer_depth, prefix


def _refuse_shared(groups: list[dict], names: dict[int, str]) -> None:
    """Refuses what torch does: joined in one group, it would only warn and step twice."""
    counts = Counter(id(group['params'][0]) for group in groups)
    shared = [names[key] for key, count in counts.items() if count > 1]
    if shared:
        raise ValueError(
            f'{", ".join(shared)}: in the model under more than one name; set '
            'paramwise_cfg.bypass_duplicate=True to optimize it once, by its first name'
        )


def _merged(groups: list[dict]) -> list[dict]:
    """Joins groups with equal settings, in the order in which they come."""
    merged: dict[tuple, dict] = {}
    for group in groups:
        settings = {key: value for key, value in group.items() if key != 'params'}
        key = tuple(sorted((name, repr(value)) for name, value in settings.items()))
        merged.setdefault(key, {'params': [], **settings})['params'].extend(group['params'])
    return list(merged.values())
