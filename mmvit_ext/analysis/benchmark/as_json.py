"""What was measured, to JSON and back."""

import dataclasses
from typing import Any

from .case import Case
from .figures import figures_of
from .memory import Memory
from .record import Result, Row, Run


def to_json(runs: list[Run]) -> dict[str, Any]:
    """What is measured and, beside it, the figures drawn from it; only plain values."""
    record = {'runs': [dataclasses.asdict(run) for run in runs]}
    for run, plain in zip(runs, record['runs']):
        for group, plain_group in zip(run.groups, plain['groups']):
            for result, plain_result in zip(group, plain_group):
                figures = [dataclasses.asdict(each) for each in figures_of(result)]
                for row, drawn in zip(plain_result['rows'], figures):
                    row['figures'] = drawn
    return record


def from_json(record: dict[str, Any]) -> list[Run]:
    """The runs of a record that :func:`to_json` made.

    Raises:
        KeyError, TypeError: If it is another record.
    """
    return [
        Run(
            run['machine'],
            run['settings'],
            [[_result(result) for result in group] for group in run['groups']],
            run['command'],
        )
        for run in record['runs']
    ]


def _result(plain: dict[str, Any]) -> Result:
    case = Case(**{**plain['case'], 'shape': tuple(plain['case']['shape'])})
    rows = [_row(row) for row in plain['rows']]
    return Result(case, plain['product_multiply_adds'], plain['product_seconds'], rows)


def _row(plain: dict[str, Any]) -> Row:
    row = Row(**{key: value for key, value in plain.items() if key != 'figures'})
    row.memory = Memory(**row.memory) if row.memory else None
    return row
