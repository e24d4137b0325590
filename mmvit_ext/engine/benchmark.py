"""The benchmark of backbones: from the command line to a page, its data and pictures."""

import argparse
import itertools
import json
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from mmvit_ext.analysis.benchmark import (
    Case,
    Run,
    Settings,
    draw,
    from_json,
    measure,
    page,
    parse_shape,
    picture_names,
    to_json,
)
from mmvit_ext.errors import UsageError

from .config import require_file


def benchmark(args: argparse.Namespace) -> None:
    """Does what ``tools/analysis_tools/benchmark.py`` was told to.

    Raises:
        UsageError: On an argument that cannot work.
    """
    if not args.models and not args.add:
        raise UsageError('give --models, or --add with the JSON of earlier runs')
    file = Path(args.page or Path(args.out) / 'benchmark.md')
    if file.suffix != '.md':
        raise UsageError(f'--page={file}: give a file that ends in .md')
    runs = [run for path in args.add for run in read_runs(path)]
    cases, settings = benchmark_cases(args), benchmark_settings(args)
    make_folder(file.parent / 'images')
    if args.models:
        run = measure(args.models, cases, settings, partial(print, flush=True))
        run.command = shlex.join(['python', 'tools/analysis_tools/benchmark.py', *sys.argv[1:]])
        runs.append(run)
    write(runs, file)
    print(f'\n{file.read_text(encoding="utf-8")}\nwritten to {file.absolute()}')


def benchmark_cases(args: argparse.Namespace) -> list[Case]:
    """The cases that the command line asks for, each once.

    Raises:
        UsageError: On a size that is none.
    """
    if min(args.sizes, default=1) < 1:
        raise UsageError(f'--sizes={min(args.sizes)}: give sides of 1 or more pixels')
    texts = args.shapes or ([] if args.sizes else ['4x3x224x224'])
    shapes = [parse_shape(text) for text in texts]
    shapes += [(1, 3, side, side) for side in args.sizes]
    cases = (Case(*each) for each in itertools.product(shapes, args.mode, args.dtype))
    return list(dict.fromkeys(cases))


def benchmark_settings(args: argparse.Namespace) -> Settings:
    """The settings that the command line asks for.

    Raises:
        UsageError: On a number below 1, or a device that is not there.
    """
    for field in ('threads', 'rounds'):
        if getattr(args, field) < 1:
            raise UsageError(f'--{field}={getattr(args, field)}: give 1 or more')
    if args.device not in ('cpu', 'cuda'):
        raise UsageError(f'--device={args.device}: give cpu or cuda')
    if args.device == 'cuda' and not torch.cuda.is_available():
        raise UsageError('--device=cuda: torch sees no GPU here; give cpu')
    return Settings(args.device, args.threads, args.rounds, args.compile)


def read_runs(path: str) -> list[Run]:
    """Reads the runs of an earlier benchmark.

    Raises:
        UsageError: If the file is missing or holds no such runs.
    """
    require_file('--add', path)
    try:
        return from_json(json.loads(Path(path).read_text(encoding='utf-8')))
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f'--add={path}: give the JSON that a benchmark wrote') from error


def make_folder(path: Path) -> None:
    """Made before the long work, lest that be lost.

    Raises:
        UsageError: If it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f'{path}: cannot be made ({error}); give another folder') from error


def write(runs: Sequence[Run], file: Path) -> None:
    """Writes the page, the JSON beside it, and the pictures in ``images`` beside them.

    Args:
        runs: What was measured.
        file: The page; its folder has a folder ``images``.
    """
    file.with_suffix('.json').write_text(json.dumps(to_json(runs), indent=1) + '\n', 'utf-8')
    file.write_text(page_of(runs, file.stem), encoding='utf-8')
    for i, run in enumerate(runs, 1):
        draw(run, file.parent / 'images', f'{file.stem}-{i}')


def page_of(runs: Sequence[Run], stem: str) -> str:
    """The page of a file ``stem.md``, which shows the pictures that go with it."""
    pictures = [picture_names(run, f'{stem}-{i}') for i, run in enumerate(runs, 1)]
    return page(runs, [[f'images/{name}' for name in names] for names in pictures])
