"""Where the data of a config lie: re-pointing it, and checking before anything slow starts."""

from collections.abc import Iterator
from pathlib import Path

from mmengine.config import Config, ConfigDict

from mmvit_ext.errors import UsageError

DATALOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
EVALUATORS = ('val_evaluator', 'test_evaluator')
IMAGENET_CLASSES = 1000
# mmpretrain's data sets that fetch what is not there
FETCHED = ('CIFAR10', 'CIFAR100', 'MNIST')
DEMO = 'python tools/dataset_converters/make_digits.py DIR --layout {layout}'
LAYOUTS = {
    'mmdet': 'coco --coco-names',
    'mmseg': 'ade',
    'mmpretrain': 'imagenet',
}


def datasets_of(cfg: Config, dataloader: str) -> Iterator[tuple[str, ConfigDict]]:
    """The innermost datasets of a dataloader, each with its field name in the config."""
    loader = cfg.get(dataloader)
    if loader:
        yield from _walk(f'{dataloader}.dataset', loader.get('dataset'))


def _walk(field: str, dataset: ConfigDict | None) -> Iterator[tuple[str, ConfigDict]]:
    if dataset is None:
        return
    if 'dataset' in dataset:
        yield from _walk(f'{field}.dataset', dataset.dataset)
    elif 'datasets' in dataset:
        for i, inner in enumerate(dataset.datasets):
            yield from _walk(f'{field}.datasets[{i}]', inner)
    else:
        yield field, dataset


def repoint(cfg: Config, root: str) -> None:
    """Sets another data folder in every dataset and evaluator of a config.

    Args:
        cfg: The config, changed in place.
        root: The new folder.

    Raises:
        UsageError: If the config's datasets lie in several folders, or name none.
    """
    datasets = [d for loader in DATALOADERS for _, d in datasets_of(cfg, loader)]
    roots = {str(Path(d.data_root)) for d in datasets if d.get('data_root')}
    if len(roots) != 1:
        found = ', '.join(sorted(roots)) or 'none'
        raise UsageError(
            f'--data-root={root}: the datasets of this config do not lie in one folder (found: '
            f'{found}); set each data_root with --cfg-options'
        )
    old = roots.pop()
    for dataset in datasets:
        if dataset.get('data_root'):
            dataset.data_root = root
    for name in EVALUATORS:
        for evaluator in _as_list(cfg.get(name)):
            _repoint_values(evaluator, old, root)


def _as_list(value: object) -> list:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _repoint_values(node: ConfigDict, old: str, root: str) -> None:
    for key, value in node.items():
        if isinstance(value, str) and Path(value).is_relative_to(old):
            node[key] = str(Path(root) / Path(value).relative_to(old))


def check_data(cfg: Config, dataloaders: tuple[str, ...]) -> None:
    """Checks that files and folders named by the datasets of a config exist.

    Args:
        cfg: The config.
        dataloaders: Which of its dataloaders are about to be used.

    Raises:
        UsageError: Names the first missing path, its field, and how to get data; or a folder of
            ImageNet that has another number of classes.
    """
    for loader in dataloaders:
        for field, dataset in datasets_of(cfg, loader):
            for key, path in _paths(dataset):
                if not path.exists():
                    raise UsageError(_missing(f'{field}.{key}', path, cfg.get('default_scope')))
            if _is_imagenet(dataset) and dataset.get('split') and not dataset.get('ann_file'):
                _check_folders(field, dataset)


def _is_imagenet(dataset: ConfigDict) -> bool:
    return str(dataset.get('type')).endswith('ImageNet')


def _check_folders(field: str, dataset: ConfigDict) -> None:
    """Counts the folders of the classes; mmpretrain only asserts that they are as many."""
    split = Path(dataset.get('data_root') or '', dataset.split)
    found = sum(path.is_dir() for path in split.iterdir())
    wanted = len((dataset.get('metainfo') or {}).get('classes') or range(IMAGENET_CLASSES))
    # without folders, the labels are in meta/<split>.txt
    if found not in (0, wanted):
        raise UsageError(
            f'{field}: {split.absolute()} has folders of {found} classes, not {wanted}; set '
            f"{field}.metainfo.classes to the folders' names, in order, and the head's num_classes"
        )


def _paths(dataset: ConfigDict) -> Iterator[tuple[str, Path]]:
    root = dataset.get('data_root') or ''
    if '://' in root or str(dataset.get('type')).endswith(FETCHED):
        return
    if root:
        yield 'data_root', Path(root)
    if dataset.get('ann_file'):
        yield 'ann_file', Path(root, dataset.ann_file)
    if dataset.get('split') and _is_imagenet(dataset):
        yield 'split', Path(root, dataset.split)
    prefix = dataset.get('data_prefix') or {}
    prefixes = prefix if isinstance(prefix, dict) else {'': prefix}
    for key, value in prefixes.items():
        if value and '://' not in value:
            yield f'data_prefix.{key}'.rstrip('.'), Path(root, value)


def _missing(field: str, path: Path, scope: str | None) -> str:
    demo = DEMO.format(layout=LAYOUTS.get(scope, 'coco'))
    return (
        f'{field}: {path.absolute()} does not exist; put the data there, point to them with '
        f'--data-root DIR, or make small demo data with: {demo}'
    )
