"""The model zoo: metafiles of the configs, checked, and the tables made from them.

``model-index.yml`` imports a ``configs/<family>/metafile.yml`` a family, in the form that mim
reads: collections, and models with the stem of a config as the name. Beyond mim's keys, each result
names its ``Source``, and says ``Verified: false`` where that is not the paper or the authors'
repository.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mmvit_ext.errors import UsageError

INDEX = 'model-index.yml'
PAGE = Path('docs/model_zoo.md')
# configs that are not experiments of the papers themselves
APART = ('_base_', 'ablations', 'demo')
BEGIN, END = '<!-- zoo -->\n', '<!-- /zoo -->\n'
KINDS = {
    'in1k': 'ImageNet-1K',
    'coco': 'COCO',
    'ade20k-512x512': 'ADE20K',
    'cifar10': 'Small data sets',
    'cifar100': 'Small data sets',
    'flowers102': 'Small data sets',
    'pets': 'Small data sets',
}
HEAD = '| config | parameters | multiply-adds | published | source |\n|---|---|---|---|---|\n'
INTRODUCTION = """\
# Model zoo

Configs of the papers' experiments. Parameters, of the whole model, and multiply-adds, of one image
of 224 x 224 pixels, are counted on our models ([complexity.md](complexity.md) says how).
"Published" is what the named source reports for its own training runs; nothing here was trained by
us. Figures that could not be traced to the paper or the authors' repository say so.

This page is written by `python tools/misc/check_zoo.py --write`.
"""


@dataclass(frozen=True)
class Family:
    """A metafile.

    Attributes:
        file: Its path from the root.
        collections: Its collections, as they stand there.
        models: Its models, as they stand there.
    """

    file: Path
    collections: list[dict[str, Any]]
    models: list[dict[str, Any]]


def read_zoo(root: Path) -> list[Family]:
    """Reads the metafiles that the index imports.

    Args:
        root: Folder of ``model-index.yml``.

    Returns:
        A family a metafile, in the index's order.

    Raises:
        UsageError: If a file is missing or no YAML, or an entry lacks its name or parameters.
    """
    families = []
    for name in _read(root / INDEX).get('Import', []):
        content = _read(root / name)
        family = Family(Path(name), content.get('Collections', []), content.get('Models', []))
        _require(family)
        families.append(family)
    return families


def _require(family: Family) -> None:
    """Checks for what the pages cannot do without."""
    for entry in (*family.collections, *family.models):
        if 'Name' not in entry:
            raise UsageError(f'{family.file}: an entry has no Name ({entry}); give it one')
    for model in family.models:
        if 'Parameters' not in model.get('Metadata', {}):
            raise UsageError(f'{family.file}, {model["Name"]}: give Metadata.Parameters')
        if model['Name'].split('_')[-1] not in KINDS:
            raise UsageError(
                f'{family.file}, {model["Name"]}: ends in no data set; choose from '
                f'{", ".join(KINDS)}'
            )


def _read(file: Path) -> dict[str, Any]:
    try:
        return yaml.safe_load(file.read_text(encoding='utf-8')) or {}
    except OSError as error:
        raise UsageError(
            f'{file}: {error.strerror}; write it, or leave it out of {INDEX}'
        ) from error
    except yaml.YAMLError as error:
        raise UsageError(f'{file}: no YAML ({error}); mend it') from error


def problems(root: Path) -> list[str]:
    """What is wrong with the zoo.

    Args:
        root: Folder of ``model-index.yml``.

    Returns:
        A line a problem: file, entry, what is wrong, what to do.
    """
    families = read_zoo(root)
    names = Counter(model['Name'] for family in families for model in family.models)
    found = [f'{INDEX}: {f.file} has no entry; add one' for f in _unlisted(root, families)]
    found += [f'{name}: stands {n} times; names are unique' for name, n in names.items() if n > 1]
    for family in families:
        for collection in family.collections:
            found += [f'{family.file}, {collection["Name"]}: {p}' for p in _faults(collection)]
            if not (root / collection.get('README', '')).is_file():
                found.append(f'{family.file}, {collection["Name"]}: README is no file; name one')
        for model in family.models:
            found += [
                f'{family.file}, {model["Name"]}: {p}' for p in _model_faults(root, family, model)
            ]
    stems = {file.stem for file in _configs(root)}
    found += [
        f'configs: {stem} stands in no metafile; add it' for stem in sorted(stems - names.keys())
    ]
    return found


def _unlisted(root: Path, families: list[Family]) -> list[Family]:
    listed = {family.file for family in families}
    files = [f.relative_to(root) for f in sorted((root / 'configs').glob('*/metafile.yml'))]
    return [Family(file, [], []) for file in files if file not in listed]


def _configs(root: Path) -> Iterator[Path]:
    """The configs that the zoo has to list; those right below ``configs`` are second names."""
    for file in sorted((root / 'configs').glob('*/*.py')):
        if file.parent.name not in APART:
            yield file


def _model_faults(root: Path, family: Family, model: dict[str, Any]) -> Iterator[str]:
    name, config = model['Name'], Path(model.get('Config', ''))
    if name != name.lower():
        yield 'the name has capitals, which mim search does not find; write it in lower case'
    if name != config.stem or config.parent != family.file.parent or not (root / config).is_file():
        yield f'Config={config}: not the config of that name in {family.file.parent}; correct it'
    if model.get('In Collection') not in [c['Name'] for c in family.collections]:
        yield f'In Collection={model.get("In Collection")}: no collection of this file; name one'
    if not str(model.get('Weights', 'https://')).startswith('https://'):
        yield f'Weights={model["Weights"]}: no public address; leave it out, or give https://'
    yield from _faults(model)
    for result in model.get('Results', []):
        if not {'Task', 'Dataset', 'Metrics', 'Source'} <= result.keys():
            yield f'Results={result}: give Task, Dataset, Metrics and Source'


def _faults(entry: dict[str, Any]) -> Iterator[str]:
    """Lists in metadata that mim cannot show."""
    for key, value in entry.get('Metadata', {}).items():
        if isinstance(value, list) and not (value and all(isinstance(v, str) for v in value)):
            yield f'Metadata.{key}={value}: mim takes non-empty lists of strings only; write such'


def pages(root: Path) -> dict[Path, str]:
    """The pages made from the metafiles.

    Args:
        root: Folder of ``model-index.yml``.

    Returns:
        The text of each page by its path from the root: the whole of ``docs/model_zoo.md``, and the
        README of each family with its table between the markers.

    Raises:
        UsageError: If a README is missing or has no markers.
    """
    families = read_zoo(root)
    models = [model for family in families for model in family.models]
    texts = {PAGE: INTRODUCTION}
    for title in dict.fromkeys(KINDS.values()):
        rows = [m for m in models if KINDS[m['Name'].split('_')[-1]] == title]
        texts[PAGE] += f'\n## {title}\n\n{_table(rows, PAGE.parent)}'
    for family in families:
        readme = family.file.parent / 'README.md'
        text = (root / readme).read_text(encoding='utf-8') if (root / readme).is_file() else ''
        if text.count(BEGIN) != 1 or text.count(END) != 1:
            raise UsageError(f'{readme}: needs the markers {BEGIN.strip()} and {END.strip()} once')
        before, rest = text.split(BEGIN)
        table = _table(family.models, readme.parent)
        texts[readme] = f'{before}{BEGIN}{table}{END}{rest.split(END)[1]}'
    return texts


def _table(models: list[dict[str, Any]], folder: Path) -> str:
    return HEAD + ''.join(_row(model, folder) for model in models)


def _row(model: dict[str, Any], folder: Path) -> str:
    config, meta = Path(model['Config']), model['Metadata']
    up = '' if config.parent == folder else '../'
    link = f'[{model["Name"]}]({up}{config.name if not up else config.as_posix()})'
    if 'Weights' in model:
        link += f" ([authors' weights]({model['Weights']}))"
    adds = f'{meta["FLOPs"] / 1e9:.2f} G' if 'FLOPs' in meta else ''
    results = model.get('Results', [])
    figures = [
        f'{metric} {value}' + ('' if result.get('Verified', True) else ' (not verified)')
        for result in results
        for metric, value in result['Metrics'].items()
    ]
    sources = dict.fromkeys(result['Source'] for result in results)
    cells = [
        link,
        f'{meta["Parameters"] / 1e6:.2f} M',
        adds,
        ', '.join(figures),
        '; '.join(sources),
    ]
    return f'| {" | ".join(cells)} |\n'


def check_zoo(args: argparse.Namespace) -> None:
    """Does what ``tools/misc/check_zoo.py`` was told to.

    Raises:
        UsageError: On problems of the metafiles, or, without ``--write``, pages that are not fresh.
    """
    root = Path(args.root)
    found = problems(root)
    if found:
        raise UsageError('\n'.join(found))
    for page, text in pages(root).items():
        if args.write:
            (root / page).write_text(text, encoding='utf-8')
        elif not (root / page).is_file() or (root / page).read_text(encoding='utf-8') != text:
            raise UsageError(f'{page}: not what the metafiles say; run with --write')
