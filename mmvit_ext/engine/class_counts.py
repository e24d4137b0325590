"""How many classes a model's heads and a config's data sets have."""

import logging
from collections.abc import Iterator
from typing import Any

from mmengine.config import Config, ConfigDict
from mmengine.logging import print_log
from mmengine.registry import DATASETS, DefaultScope
from torch import nn

from mmvit_ext.errors import UsageError

from .data_root import datasets_of

# where mmseg, mmdet and mmpretrain keep heads that classify; mmdet's RPN knows one class only
HEADS = (
    'decode_head',
    'auxiliary_head',
    'bbox_head',
    'mask_head',
    'roi_head.bbox_head',
    'roi_head.mask_head',
    'head',
)


def class_heads(model: nn.Module | ConfigDict) -> Iterator[tuple[str, Any]]:
    """The heads that have a number of classes, of a built model or of its config.

    Args:
        model: Without a wrapper for distributed training.

    Yields:
        The field in the config, such as ``model.roi_head.bbox_head[0].num_classes``, and the head.
        Mask heads that do not tell classes apart are left out.
    """
    for path in HEADS:
        part: Any = model
        for name in path.split('.'):
            part = getattr(part, name, None)
        several = isinstance(part, list | tuple | nn.ModuleList)
        for i, head in enumerate(part if several else [part]):
            number = getattr(head, 'num_classes', None)
            if isinstance(number, int) and not getattr(head, 'class_agnostic', False):
                index = f'[{i}]' if several else ''
                yield f'model.{path}{index}.num_classes', head


def dataset_classes(dataset: ConfigDict) -> tuple[str, ...] | None:
    """Names of a dataset's classes, from its config or else its type; None where both are silent.

    Args:
        dataset: Config of an innermost dataset; names are looked up in the default scope.
    """
    given = (dataset.get('metainfo') or {}).get('classes') or dataset.get('classes')
    if given is None:
        with DATASETS.switch_scope_and_registry(None) as registry:
            kind = registry.get(dataset.type) if isinstance(dataset.type, str) else dataset.type
        given = (getattr(kind, 'METAINFO', None) or {}).get('classes')
    # a string is the name of a file, and the data set's matter
    return tuple(given) if isinstance(given, list | tuple) else None


def check_classes(cfg: Config) -> None:
    """Compares the classes of the data that training uses with those of the model's heads.

    More classes than a head has cannot work. Fewer can, with a head that was pretrained on more,
    so one line warns: mmdet's evaluation fails at the first box of a class that has no name.

    Args:
        cfg: The config.

    Raises:
        UsageError: If a training set has more classes than a head.
    """
    heads = [(field, head.num_classes) for field, head in class_heads(cfg.model)]
    for name, count in _class_counts(cfg, ('train_dataloader', 'val_dataloader')) if heads else ():
        field, number = min(heads, key=lambda head: head[1])
        remedy = f'set num_classes of all heads to {count}, or {name}.metainfo.classes to'
        if count > number and name.startswith('train'):
            raise UsageError(
                f'{field}={number}: {name} has {count} classes; {remedy} {number} names'
            )
        field, number = max(heads, key=lambda head: head[1])
        if count < number:
            print_log(
                f'{field}={number}: {name} has {count} classes; {remedy} {number} names, unless '
                'that is on purpose',
                'current',
                level=logging.WARNING,
            )


def _class_counts(cfg: Config, dataloaders: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Field and number of classes of each dataset that tells it."""
    with DefaultScope.overwrite_default_scope(cfg.get('default_scope')):
        for loader in dataloaders:
            for name, dataset in datasets_of(cfg, loader):
                classes = dataset_classes(dataset)
                if classes:
                    yield name, len(classes)
