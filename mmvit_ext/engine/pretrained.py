"""Initialisation from a checkpoint of any known source, which fails loudly if little arrives."""

import os
from collections.abc import Collection, Iterable, Sequence

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
            arrive; gates and augmented paths, which plain networks lack, are not counted.
        begin: 'plain' starts the gates of residual attention and the augmented paths that the
            checkpoint lacks so that the network computes what the plain one does: gates at 1,
            paths at 0. Default: they start as the backbone initialises them.
        map_location: Accepted from configs written for mmengine's ``Pretrained``; tensors are
            read on the CPU and copied into the parameters, wherever these are.
    """

    def __init__(
        self,
        checkpoint: str,
        prefix: str | None = None,
        min_match: float = 0.9,
        begin: str | None = None,
        map_location: str = 'cpu',
    ) -> None:
        if begin not in (None, 'plain'):
            raise ValueError(f"begin='{begin}': choose 'plain' or leave it out")
        self.checkpoint = os.fspath(checkpoint)
        self.prefix = prefix
        self.min_match = min_match
        self.begin = begin

    def __call__(self, module: nn.Module) -> None:
        """Loads the weights into ``module`` and logs one line of what arrived.

        Raises:
            ValueError: If the file holds no weights of a known source, if a shape differs, if
                less than ``min_match`` of the parameters arrive, or if the network cannot begin
                as the plain one.
        """
        weights = self._weights(module)
        try:
            result = module.load_state_dict(weights, strict=False)
        except RuntimeError as error:
            raise ValueError(
                f'checkpoint={self.checkpoint}: weights of another architecture; '
                + '; '.join(line.strip() for line in str(error).splitlines()[1:4])
            ) from error
        missing = set(result.missing_keys)
        self._report(module, missing, result.unexpected_keys)
        if self.begin == 'plain':
            self._begin_plain(module, missing)
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

    def _begin_plain(self, module: nn.Module, missing: Collection[str]) -> None:
        arrived = [name for name, _ in module.named_parameters() if name not in missing]
        try:
            module.begin_plain(arrived)
        except ValueError as error:
            raise ValueError(f"checkpoint={self.checkpoint}: begin='plain': {error}") from error

    def _report(
        self, module: nn.Module, missing: Collection[str], unexpected: Sequence[str]
    ) -> None:
        parameters = dict(module.named_parameters())
        added = _added(module)
        new = [name for name in parameters if name in missing]
        sizes = {n: p.numel() for n, p in parameters.items() if n not in added}
        share = sum(size for n, size in sizes.items() if n not in missing) / sum(sizes.values())
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
        if self.begin is None and added.intersection(new):
            line += "; begin='plain' would start gates and augmented paths without effect"
        print_log(line, logger='current')


def _added(module: nn.Module) -> set[str]:
    """Names of the parameters of gates and augmented paths."""
    parts = [(n, m) for n, m in module.named_modules() if n and hasattr(m, 'begin_plain')]
    return {f'{n}.{key}' for n, part in parts for key, _ in part.named_parameters()}


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
