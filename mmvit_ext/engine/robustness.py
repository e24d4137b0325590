"""Robustness of classifiers against translation and shrinking: from configs to a table."""

import argparse
import copy
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn as nn
from mmengine.config import Config, ConfigDict
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, init_default_scope
from torch.utils.data import DataLoader, Dataset, Subset

from mmvit_ext.analysis.robustness import Batches, Robustness, measure, page, record
from mmvit_ext.analysis.robustness_plot import plot
from mmvit_ext.errors import UsageError

from .checkpoint_file import read_checkpoint
from .config import read_config, require_file
from .data_root import check_data, datasets_of, repoint

LOADER = 'test_dataloader'


def robustness(args: argparse.Namespace) -> None:
    """Does what ``tools/analysis_tools/robustness.py`` was told to.

    Writes ``robustness.json``, ``robustness.md`` and ``robustness.png`` into the output folder.

    Raises:
        UsageError: On an argument, config, checkpoint or data set that cannot work.
    """
    shares = check_shares(args.shares)
    if args.limit is not None and args.limit < 1:
        raise UsageError(f'--limit={args.limit}: give 1 or more images')
    models = [('checkpoint', args.config, args.checkpoint)]
    if args.second:
        models.append(('--second', *args.second))
    for field, _, checkpoint in models:
        require_file(field, checkpoint)
    cfgs = [classifier_config(config, args.data_root) for _, config, _ in models]
    if args.second:
        _check_same_images(*cfgs)
    out = _folder(args.out)
    names = model_names([(config, checkpoint) for _, config, checkpoint in models])
    results = []
    for name, cfg, (field, _, checkpoint) in zip(names, cfgs, models):
        model = load_classifier(cfg, checkpoint, field)
        results.append(_measure(name, model, cfg, shares, args.limit))
    _write(out, results)
    print(f'\n{page(results)}\nwritten to {out.absolute()}')


def check_shares(shares: Sequence[float]) -> list[float]:
    """The shares in order, each once.

    Raises:
        UsageError: If one is not between 0 and 1.
    """
    for share in shares:
        if not 0 < share < 1:
            raise UsageError(
                f'--shares={share:g}: not between 0 and 1; give shares of the side, such as 0.15'
            )
    return sorted(set(shares))


def classifier_config(path: str, data_root: str | None) -> Config:
    """Reads the config of a classifier whose test set can be changed image by image.

    Args:
        path: The config.
        data_root: Another data folder for its datasets, if any.

    Returns:
        The config.

    Raises:
        UsageError: If the config is missing or of another scope, or if it has no test set, none
            that ends in ``PackInputs``, or one whose files are missing.
    """
    cfg = read_config(path)
    if cfg.default_scope != 'mmpretrain':
        raise UsageError(
            f"default_scope='{cfg.default_scope}' in {path}: only classifiers have a top-1 "
            'accuracy; give a config of mmpretrain'
        )
    if data_root:
        repoint(cfg, data_root)
    datasets = list(datasets_of(cfg, LOADER))
    if not datasets:
        raise UsageError(f'{LOADER} in {path}: missing; give a config with a test set')
    for field, dataset in datasets:
        _pack_place(field, dataset)
    check_data(cfg, (LOADER,))
    return cfg


def _pack_place(field: str, dataset: ConfigDict) -> int:
    """Where in a pipeline images are packed for the model."""
    kinds = [step['type'] for step in dataset.get('pipeline') or ()]
    # new-style configs hold the class itself
    names = [getattr(kind, '__name__', str(kind)).split('.')[-1] for kind in kinds]
    if 'PackInputs' not in names:
        raise UsageError(
            f'{field}.pipeline: has no PackInputs, before which images are changed (found: '
            f'{", ".join(names) or "nothing"}); give the config of a single-label classifier'
        )
    return names.index('PackInputs')


def test_set(cfg: Config, transform: dict[str, Any] | None) -> Dataset:
    """Builds the test set of a config, its images changed right before they are packed.

    Args:
        cfg: The config; left as it is.
        transform: Config of the change; None leaves the images as they are.

    Returns:
        The data set.
    """
    init_default_scope(cfg.default_scope)
    cfg = copy.deepcopy(cfg)
    if transform is not None:
        for field, dataset in datasets_of(cfg, LOADER):
            place = _pack_place(field, dataset)
            dataset.pipeline = [*dataset.pipeline[:place], transform, *dataset.pipeline[place:]]
    dataset = DATASETS.build(cfg[LOADER].dataset)
    if hasattr(dataset, 'full_init'):
        dataset.full_init()
    return dataset


def _check_same_images(first: Config, second: Config) -> None:
    """Losses of two models compare on the same images only; their number must agree."""
    sizes = [len(test_set(cfg, None)) for cfg in (first, second)]
    if sizes[0] != sizes[1]:
        raise UsageError(
            f'--second: its test set has {sizes[1]} images, that of the first config {sizes[0]}; '
            'give configs with the same test set'
        )


def load_classifier(cfg: Config, checkpoint: str, field: str) -> nn.Module:
    """Builds a classifier, with all its weights from a checkpoint, on the GPU if there is one.

    Args:
        cfg: Config of mmpretrain.
        checkpoint: Path of a checkpoint.
        field: The argument that gave it.

    Returns:
        The model, in eval mode.

    Raises:
        UsageError: If the file is no checkpoint, or not one of this model.
    """
    from mmpretrain.apis import get_model

    cfg = copy.deepcopy(cfg)
    # the checkpoint holds the backbone too: nothing needs to be fetched
    if 'backbone' in cfg.model:
        cfg.model.backbone.init_cfg = None
    model = get_model(cfg)
    try:
        content = read_checkpoint(checkpoint)
        found = model.load_state_dict(content.get('state_dict', content), strict=False)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise UsageError(f'{field}={checkpoint}: not of this model ({reason})') from error
    missing = set(found.missing_keys) & {name for name, _ in model.named_parameters()}
    if missing:
        raise UsageError(
            f'{field}={checkpoint}: not of this model ({len(missing)} weights are missing, such '
            f'as {min(missing)}); give a checkpoint that was trained with this config'
        )
    return model.eval().to('cuda:0' if torch.cuda.is_available() else 'cpu')


def spread(total: int, limit: int | None) -> range | list[int]:
    """Places of at most ``limit`` images, evenly spread, as test sets are sorted by class.

    Args:
        total: Number of images.
        limit: Most images; None takes all.

    Returns:
        Places in increasing order.
    """
    if limit is None or limit >= total:
        return range(total)
    return [i * total // limit for i in range(limit)]


def _measure(
    name: str, model: nn.Module, cfg: Config, shares: Sequence[float], limit: int | None
) -> Robustness:
    with torch.no_grad():
        return measure(name, model, _batches(name, cfg, limit), shares)


def _batches(name: str, cfg: Config, limit: int | None) -> Batches:
    def load(transform: dict[str, Any] | None) -> Iterable[Any]:
        print(f'{name}: {transform or "untouched"}', flush=True)
        dataset = test_set(cfg, transform)
        return DataLoader(
            Subset(dataset, spread(len(dataset), limit)),
            batch_size=cfg[LOADER].get('batch_size', 1),
            num_workers=cfg[LOADER].get('num_workers', 0),
            collate_fn=pseudo_collate,
        )

    return load


def model_names(models: Sequence[tuple[str, str]]) -> list[str]:
    """Names of models by config and checkpoint: the config's, or the checkpoint's if it differs.

    Args:
        models: Paths of the config and the checkpoint of each.

    Returns:
        A name for each.
    """
    stems = [Path(config).stem for config, _ in models]
    if len(set(stems)) == len(stems):
        return stems
    return [checkpoint for _, checkpoint in models]


def _folder(path: str) -> Path:
    """Made before the long work, lest that be lost."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f'--out={path}: cannot be made ({error}); give another folder') from error
    return Path(path)


def _write(out: Path, results: Sequence[Robustness]) -> None:
    text = json.dumps(record(results), indent=1)
    (out / 'robustness.json').write_text(text, encoding='utf-8')
    (out / 'robustness.md').write_text(page(results), encoding='utf-8')
    plot(results, out / 'robustness.png')
