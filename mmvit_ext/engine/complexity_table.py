"""Size and work of models: of one config, or a table of many for the documentation."""

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn as nn
from mmengine.registry import MODELS, init_default_scope

from mmvit_ext.analysis import Complexity, count
from mmvit_ext.errors import UsageError
from mmvit_ext.models.layers import BlockCirculant

from .config import read_config, require_file

UNITS = {'': 1, 'M': 1e6, 'G': 1e9}
HEADER = """\
# Parameters and multiply-adds

One image through the backbone and a linear classifier of {classes} classes. Counted are matrix
products: convolutions, linear layers, both products of attention, and circulant layers in the form
named. Element-wise work, norms and shifts are free, and so is what depends on the weights alone.
Papers call multiply-adds FLOPs; some leave the products of attention out.

"Printed" is what the paper or its repository says, "recounted" what others counted on published
code. A remark tells where a figure differs from these by more than their rounding.

This page is written by `python tools/analysis_tools/get_flops.py --table docs/complexity.json`.

| model | pixels | parameters | multiply-adds | printed | recounted | remark |
|---|---|---|---|---|---|---|
"""


def get_flops(args: argparse.Namespace) -> None:
    """Does what ``tools/analysis_tools/get_flops.py`` was told to.

    Raises:
        UsageError: On a missing file or an image without pixels, and unless there is either a
            config or a table.
    """
    if (args.config is None) == (args.table is None):
        raise UsageError('give either a config or --table JSON')
    if args.table is None:
        if min(args.size) < 1:
            raise UsageError(f'--size={args.size}: give 1 or more pixels')
        for part, complexity in config_complexity(args.config, tuple(args.size)):
            print(
                f'{part}: {complexity.parameters:,} parameters, '
                f'{complexity.multiply_adds:,} multiply-adds'
            )
        return
    table = read_table(args.table)
    page = Path(args.table).with_suffix('.md')
    page.write_text(table_page(table, count_table(table)), encoding='utf-8')
    print(f'wrote {page}')


def config_complexity(path: str, size: tuple[int, int]) -> Iterator[tuple[str, Complexity]]:
    """Counts the backbone of a config and, but for detectors, the whole model.

    Detectors are left to their backbone: the work of their heads depends on what they find.

    Args:
        path: The config.
        size: Height and width of the image, in pixels.

    Yields:
        The part's name, and its complexity.

    Raises:
        UsageError: If the config is missing or names no backbone.
    """
    cfg = read_config(path)
    init_default_scope(cfg.default_scope)
    model = cfg.get('model') or {}
    if not model.get('backbone'):
        raise UsageError(f'model.backbone in {path}: missing; give the config of a model')
    yield f'backbone {model.backbone.type}', _count_config(model.backbone, size)
    if cfg.default_scope != 'mmdet':
        yield f'model {model.type}', _count_config(model, size)


def _count_config(cfg: dict, size: tuple[int, int]) -> Complexity:
    # on the CPU: not all backbones of other packages can be built without memory
    return count(MODELS.build(cfg), size)


def read_table(path: str) -> dict[str, Any]:
    """Reads a list of models.

    Args:
        path: JSON file with ``classes`` and ``models``; each of these has ``model`` (its name),
            ``backbone`` (its config) and ``image`` (side in pixels), and may have ``form`` (of
            its circulant layers), ``printed`` and ``recounted`` (figures with their source) and
            ``note``.

    Returns:
        The list.

    Raises:
        UsageError: If the file is missing or holds no such list.
    """
    require_file('--table', path)
    try:
        table = json.loads(Path(path).read_text(encoding='utf-8'))
        complete = all({'model', 'backbone', 'image'} <= set(e) for e in table['models'])
    except (ValueError, KeyError, TypeError):
        complete = False
    if not complete or 'classes' not in table:
        raise UsageError(
            f'--table={path}: give JSON with classes and models, each with model, backbone and '
            'image, like docs/complexity.json'
        )
    return table


def count_table(table: dict[str, Any]) -> list[Complexity]:
    """Counts all models of a list."""
    return [_count_entry(entry, table['classes']) for entry in table['models']]


def table_page(table: dict[str, Any], counted: Sequence[Complexity]) -> str:
    """The page of a list of models, in Markdown.

    Args:
        table: The list.
        counted: The complexity of each model.

    Returns:
        The page.
    """
    rows = [_row(entry, complexity) for entry, complexity in zip(table['models'], counted)]
    return HEADER.format(classes=table['classes']) + ''.join(rows)


def _count_entry(entry: dict[str, Any], classes: int) -> Complexity:
    """Counts one model of the list, with a linear classifier."""
    with torch.device('meta'):
        backbone = MODELS.build(entry['backbone'])
        if 'form' in entry:
            _set_form(backbone, entry['form'])
    counted = count(backbone, (entry['image'], entry['image']))
    return counted.with_classifier(backbone.out_channels[-1], classes)


def _set_form(model: nn.Module, form: str) -> None:
    """Puts circulant layers of another form, newly initialised, in the place of the model's."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, BlockCirculant):
                width = child.bias.numel()
                layer = BlockCirculant(child.in_features, width, child.side, form)
                setattr(module, name, layer)


def _row(entry: dict[str, Any], counted: Complexity) -> str:
    parameters = f'{counted.parameters / UNITS["M"]:.2f} M'
    multiply_adds = f'{counted.multiply_adds / UNITS["G"]:.2f} G'
    references = [_reference(entry.get(key)) for key in ('printed', 'recounted')]
    remarks = [_disagreement(entry.get(key), counted) for key in ('printed', 'recounted')]
    remarks = [remark for remark in (*remarks, entry.get('note')) if remark]
    cells = [entry['model'], str(entry['image']), parameters, multiply_adds, *references]
    return f'| {" | ".join([*cells, "; ".join(remarks)])} |\n'


def _reference(figures: dict[str, str] | None) -> str:
    if figures is None:
        return ''
    values = [figures[key] for key in ('parameters', 'multiply_adds') if key in figures]
    return f'{" / ".join(values)}, {figures["source"]}'


def _disagreement(figures: dict[str, str] | None, counted: Complexity) -> str:
    """What was counted where a figure is off by more than its rounding; empty if none is."""
    found = []
    for key, value in vars(counted).items():
        figure = (figures or {}).get(key)
        if figure is not None and not agrees(value, figure):
            unit = re.sub(r'[\d.]', '', figure)
            found.append(f'{value / UNITS[unit]:.2f} {unit} against {figure[: -len(unit)]} {unit}')
    return ', '.join(found)


def agrees(value: float, figure: str) -> bool:
    """Whether a value rounds to a figure such as '4.5G', '29M' or '24173321'.

    Args:
        value: What was counted.
        figure: Digits, then M or G for millions or billions.
    """
    number, unit = re.fullmatch(r'([\d.]+)([MG]?)', figure).groups()
    decimals = len(number.partition('.')[2])
    return round(value / UNITS[unit], decimals) == float(number)
