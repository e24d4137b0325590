"""Converts a checkpoint file once and for all."""

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from mmvit_ext.errors import UsageError
from mmvit_ext.models.convert import Converted, convert
from mmvit_ext.version import __version__

from .checkpoint_file import read_checkpoint


def convert_file(args: argparse.Namespace) -> None:
    """Does what ``tools/model_converters/convert.py`` was told to.

    Raises:
        UsageError: If the source cannot be read or is of no known kind, has no head where one is
            wanted, or would be overwritten.
    """
    out = Path(args.out).expanduser()
    source = Path(args.source).expanduser()
    if source.exists() and out.exists() and source.samefile(out):
        raise UsageError(f'OUT={args.out}: is the source itself; give another file')
    try:
        converted = convert(read_checkpoint(args.source))
    except (ValueError, OSError) as error:
        raise UsageError(f'IN={args.source}: {error}') from error
    weights = converted.backbone if args.to == 'backbone' else _classifier(args.source, converted)
    meta = {'source': converted.source, 'converted_by': f'mmvit_ext {__version__}'}
    _save({'state_dict': weights, 'meta': meta}, out)
    print(f'{converted.source}: {len(weights)} tensors written to {out}')


def _classifier(source: str, converted: Converted) -> dict[str, Tensor]:
    """The names of an ImageClassifier of mmpretrain with a linear head."""
    if not converted.head:
        raise UsageError(
            f'--to classifier: {source} ({converted.source}) has no classifier; leave --to out'
        )
    backbone = {f'backbone.{name}': value for name, value in converted.backbone.items()}
    return backbone | {f'head.{name}': value for name, value in converted.head.items()}


def _save(content: dict, out: Path) -> None:
    """Writes beside the target first: what was there stays until all is written."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # a folder of its own: no file of the user can have the temporary name
        with TemporaryDirectory(prefix=f'.{out.name}.', dir=out.parent) as folder:
            part = Path(folder) / out.name
            torch.save(content, part)
            os.replace(part, out)
    except (OSError, RuntimeError) as error:
        raise UsageError(f'OUT={out}: cannot be written ({error})') from error
