"""Tells whether the data of a config are where they should be, and what they hold."""

import argparse
import sys

from mmengine.config import Config, ConfigDict
from mmengine.logging import MMLogger
from mmengine.registry import init_default_scope
from rich.console import Console
from rich.table import Table

from mmvit_ext.errors import UsageError

from .class_counts import class_heads
from .config import read_config
from .data_report.layouts import layout_of
from .data_report.report import DataReport, report_on
from .data_root import DATALOADERS, check_data, datasets_of, repoint

# more classes than these are summed up
MOST_ROWS = 200


def check(args: argparse.Namespace) -> None:
    """Checks as ``tools/dataset_converters/check_data.py`` was told to, and prints a report.

    Raises:
        SystemExit: With status 1, if something is wrong with the data.
        UsageError: On an argument that cannot work.
    """
    cfg = data_config(args)
    init_default_scope(cfg.default_scope)
    # the report says what the data sets would log
    MMLogger.get_instance('check_data', log_level='WARNING')
    console = Console(soft_wrap=True)
    reports = []
    for fields, dataset in _different(cfg):
        report = _report(fields, dataset, cfg, args.decode)
        _show(report, dataset, cfg.default_scope, console)
        reports.append(report)
    between = _between(reports, cfg)
    for line in between:
        console.print(f'wrong: {line}', markup=False, highlight=False)
    count = sum(len(report.faults) for report in reports) + len(between)
    print(f'{count} faults' if count else 'all there')
    if count:
        sys.exit(1)


def data_config(args: argparse.Namespace) -> Config:
    """The config of a tool for data, with the command line's changes.

    Args:
        args: Parsed arguments of :func:`mmvit_ext.engine.cli.data_parser`.

    Returns:
        The config.

    Raises:
        UsageError: If there is no such config, or its data cannot be re-pointed.
    """
    cfg = read_config(args.config)
    if args.cfg_options:
        cfg.merge_from_dict(args.cfg_options)
    if args.data_root:
        repoint(cfg, args.data_root)
    return cfg


def _different(cfg: Config) -> list[tuple[list[str], ConfigDict]]:
    """The datasets of a config, with all fields of those that read the same files."""
    found: dict[str, tuple[list[str], ConfigDict]] = {}
    for loader in DATALOADERS:
        for field, dataset in datasets_of(cfg, loader):
            names = ('type', 'data_root', 'ann_file', 'data_prefix', 'split', 'metainfo')
            key = repr([dataset.get(name) for name in names])
            found.setdefault(key, ([], dataset))[0].append(field)
    return list(found.values())


def _report(fields: list[str], dataset: ConfigDict, cfg: Config, decode: bool) -> DataReport:
    try:
        check_data(cfg, (fields[0].split('.')[0],))
    except UsageError as error:
        return DataReport(fields, faults=[str(error)])
    return report_on(fields, dataset, decode)


def _show(report: DataReport, dataset: ConfigDict, scope: str, console: Console) -> None:
    root = dataset.get('data_root') or ''
    lines = [f'{", ".join(report.fields)}: {dataset.type}, {root}', *report.notes]
    lines += [f'wrong: {fault}' for fault in report.faults]
    if not report.built:
        lines.append(f'{dataset.type} is laid out like this (DIR is {root or "data_root"}):')
        lines += layout_of(dataset, scope).splitlines()
    for i, line in enumerate(lines):
        console.print(f'  {line}' if i else line, markup=False, highlight=False)
    if report.labels:
        _show_labels(report, console)


def _show_labels(report: DataReport, console: Console) -> None:
    labels, names = report.labels, report.classes
    numbers = range(len(names)) if names else sorted(labels.images)
    title = {number: names[number] if names else str(number) for number in numbers}
    amounts = [labels.images[number] for number in numbers]
    none = sum(amount == 0 for amount in amounts)
    if amounts:
        console.print(
            f'  {len(amounts)} classes, {none} of them without an image; '
            f'{min(amounts)} to {max(amounts)} images each',
            highlight=False,
        )
    if len(amounts) > MOST_ROWS:
        return
    table = Table('class', *filter(None, [labels.unit]), 'images')
    for number in numbers:
        amount = [str(labels.amount[number])] if labels.unit else []
        table.add_row(title[number], *amount, str(labels.images[number]))
    console.print(table)


def _between(reports: list[DataReport], cfg: Config) -> list[str]:
    """What does not fit between the data sets, or between them and the model."""
    lines = []
    named = [report for report in reports if report.classes]
    for other in named[1:]:
        if other.classes != named[0].classes:
            lines.append(
                f'{named[0].fields[0]} and {other.fields[0]} have other classes, or another '
                'order of them, so their labels do not mean the same'
            )
    heads = [(field, head.num_classes) for field, head in class_heads(cfg.get('model') or {})]
    for report in named:
        differ = [f'{field}={number}' for field, number in heads if number != len(report.classes)]
        if differ:
            lines.append(
                f'{report.fields[0]} has {len(report.classes)} classes, but {", ".join(differ)}; '
                'set num_classes or metainfo.classes'
            )
    return lines
