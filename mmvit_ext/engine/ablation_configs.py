"""Configs of the papers' ablations, written from a table: each is a child with a setting or two.

The table is JSON: a list of rows with ``name`` (the config's stem), ``base`` (its ``_base_``),
``about`` (its first line) and ``options`` (dotted names of settings and their values). A row with a
``grid`` stands for one config a combination: for each of its keys a dict from label to value. In
``name``, ``base`` and ``about``, ``{key}`` is the label; an option ``'{key}'`` is the value.
"""

import argparse
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

from mmvit_ext.errors import UsageError

from .config import require_file

WIDTH = 100


def ablation_configs(table: list[dict[str, Any]]) -> dict[str, str]:
    """The texts of all configs of a table.

    Args:
        table: Its rows.

    Returns:
        The text of each config by its stem.

    Raises:
        UsageError: If a name stands twice.
    """
    texts: dict[str, str] = {}
    for row in table:
        for name, text in _configs_of(row):
            if name in texts:
                raise UsageError(f'name={name}: stands twice in the table; rename one')
            texts[name] = text
    return texts


def _configs_of(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    grid = row.get('grid', {})
    for labels in itertools.product(*grid.values()):
        label = dict(zip(grid, labels))
        value = {f'{{{key}}}': grid[key][name] for key, name in label.items()}
        settings: dict[str, Any] = {}
        for option, given in row['options'].items():
            given = value.get(given, given) if isinstance(given, str) else given
            _set(settings, option.split('.'), given)
        lines = [f'# {row["about"].format(**label)}', f"_base_ = '{row['base'].format(**label)}'"]
        lines += ['', *(f'{key} = {_code(v, len(key) + 3)}' for key, v in settings.items())]
        yield row['name'].format(**label), '\n'.join(lines) + '\n'


def _set(settings: dict[str, Any], path: list[str], value: Any) -> None:
    for key in path[:-1]:
        settings = settings.setdefault(key, {})
    settings[path[-1]] = value


def _code(value: Any, start: int) -> str:
    """Python for a value that begins in column ``start``, broken where it would be too long."""
    if isinstance(value, dict):
        parts, ends = [(f'{key}=', inner) for key, inner in value.items()], ('dict(', ')')
    elif isinstance(value, list):
        parts, ends = [('', inner) for inner in value], '[]'
    else:
        return repr(value)
    line = ', '.join(name + _code(inner, -WIDTH) for name, inner in parts)
    if start + len(ends[0] + line + ends[1]) <= WIDTH:
        return ends[0] + line + ends[1]
    lines = [name + _code(inner, len(name) + 5) + ',' for name, inner in parts]
    return '\n'.join([ends[0], indent('\n'.join(lines), '    '), ends[1]])


def write_ablations(args: argparse.Namespace) -> None:
    """Writes or checks the configs beside a table, as ``tools/misc/write_ablations.py`` was told.

    Raises:
        UsageError: If, when checking, a file differs from the table, is missing, or has no row.
    """
    require_file('table', args.table)
    folder = Path(args.table).parent
    texts = ablation_configs(json.loads(Path(args.table).read_text()))
    found = {file.stem: file.read_text() for file in folder.glob('*.py')}
    if args.check:
        wrong = sorted(name for name in {*found, *texts} if found.get(name) != texts.get(name))
        if wrong:
            raise UsageError(
                f'{folder}: {", ".join(wrong)} not as the table has it; run without --check'
            )
        return
    for name in found.keys() - texts.keys():
        (folder / f'{name}.py').unlink()
    for name, text in texts.items():
        (folder / f'{name}.py').write_text(text)
