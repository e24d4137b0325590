"""Initialisation from a checkpoint of any known source, which fails loudly if little arrives."""

import os
from collections.abc import Iterable, Sequence

import torch.nn as nn
from mmengine.logging import print_log
from mmengine.model import update_init_info
from torch import Tensor

from mmvit_ext.models.convert import convert, unwrap
from mmvit_ext.registry import WEIGHT_INITIALIZERS

from .checkpoint_file import read_checkpoint


@WEIGHT_INITIALIZERS.register_module()
class Pretrained:
    """Loads a backbone's weights: ``init_cfg=dict(type='mmvit_ext.Pretrained', checkpoint=...)``.

    The backbones of this package take mmengine's plain ``Pretrained`` as this one. Weights of the
    authors, of timm, mmdet, mmseg and mmpretrain and our own are converted as needed, and
    position tables of another size are resampled.

    Args:
        checkpoint: Path or URL.
        prefix: Loads only what starts with it, such as ``'backbone.'``; not needed for the usual
            prefixes, which are found.
        min_match: Least share of the backbone's parameters (counted in elements) that has to
            arrive.
        map_location: Accepted from configs written for mmengine's ``Pretrained``; tensors are
            read on the CPU and copied into the parameters, wherever these are.
    """

    def __init__(
        self,
        checkpoint: str,
        prefix: str | None = None,
        min_match: float = 0.9,
        map_location: str = 'cpu',
    ) -> None:
        self.checkpoint = os.fspath(checkpoint)
        self.prefix = prefix
        self.min_match = min_match

    def __call__(self, module: nn.Module) -> None:
        """Loads the weights into ``module`` and logs one line of what arrived.

        Raises:
            ValueError: If the file holds no weights of a known source, if a shape differs, or if
                less than ``min_match`` of the parameters arrive.
        """
        weights = self._weights(module)
        try:
            result = module.load_state_dict(weights, strict=False)
        except RuntimeError as error:
            raise ValueError(
                f'checkpoint={self.checkpoint}: weights of another architecture; '
                + '; '.join(line.strip() for line in str(error).splitlines()[1:4])
            ) from error
        self._report(module, weights, result.missing_keys, result.unexpected_keys)
        if hasattr(module, '_params_init_info'):
            update_init_info(module, init_info=f'Pretrained: load from {self.checkpoint}')

    def _weights(self, module: nn.Module) -> dict[str, Tensor]:
        content = read_checkpoint(self.checkpoint)
        try:
            if self.prefix:
                content = _only(content, self.prefix)
            return convert(content).backbone
        except ValueError as error:
            wanted = f'{type(module).__name__} wants {_some(module.state_dict())}'
            raise ValueError(f'checkpoint={self.checkpoint}: {error}; {wanted}') from error

    def _report(
        self,
        module: nn.Module,
        weights: dict[str, Tensor],
        missing: Sequence[str],
        unexpected: Sequence[str],
    ) -> None:
        parameters = dict(module.named_parameters())
        new = [name for name in missing if name in parameters]
        arrived = sum(p.numel() for name, p in parameters.items() if name not in set(new))
        share = arrived / sum(p.numel() for p in parameters.values())
        counts = f'{len(parameters) - len(new)} of {len(parameters)} loaded'
        if share < self.min_match:
            raise ValueError(
                f'checkpoint={self.checkpoint}: {counts}, {share:.1%} of the parameters where '
                f'min_match={self.min_match} wants {self.min_match:.0%}; missing {_some(new)}; '
                f'not used {_some(unexpected)}; give a checkpoint of this architecture, or lower '
                'min_match'
            )
        line = f'{self.checkpoint}: {counts}'
        line += f'; new: {_some(new)}' if new else ''
        line += f'; not used: {_some(unexpected)}' if unexpected else ''
        print_log(line, logger='current')


def _only(content: dict, prefix: str) -> dict:
    weights = unwrap(content)
    found = {k[len(prefix) :]: v for k, v in weights.items() if k.startswith(prefix)}
    if not found:
        raise ValueError(f"prefix='{prefix}': no key starts with it; there are {_some(weights)}")
    return found


def _some(names: Iterable[str]) -> str:
    names = list(names)
    more = f', ... ({len(names)} in all)' if len(names) > 4 else ''
    return ', '.join(names[:4]) + more if names else 'nothing'
