"""How a model is named on the command line: ``SOURCE:NAME`` or ``SOURCE:NAME:key=value,...``."""

import argparse
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mmengine.config import DictAction

from mmvit_ext.errors import UsageError

# names shown for one that is unknown
NEAR = 6


@dataclass(frozen=True)
class Spec:
    """A model by name.

    Attributes:
        text: The whole, such as ``mmvit_ext:ReSwin:arch=tiny,alpha=0.5``.
        source: What stands before the first colon: where the model comes from.
        name: Its name there.
        arguments: Keyword arguments of its constructor.
    """

    text: str
    source: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


def parse_spec(text: str) -> Spec:
    """Takes a model's name apart; values are written as in mmengine's ``--cfg-options``.

    Args:
        text: ``SOURCE:NAME``, then, behind another colon, keyword arguments with commas between,
            such as ``mmpretrain:MViT:arch=tiny,out_scales=[0,1,2,3]``.

    Returns:
        The parts.

    Raises:
        UsageError: If it is not written so.
    """
    source, name, options = (*text.split(':', 2), '', '')[:3]
    # commas inside brackets have no key behind them
    options = re.split(r',(?=\w+=)', options) if options else []
    written = source and name and all(re.match(r'\w+=.', option) for option in options)
    if not written:
        raise UsageError(
            f'--models={text}: give SOURCE:NAME or SOURCE:NAME:key=value,..., such as '
            'mmvit_ext:ReSwin:arch=tiny'
        )
    return Spec(text, source, name, _values(options))


def _values(options: list[str]) -> dict[str, Any]:
    """The values of ``key=value`` pairs."""
    if not options:
        return {}
    parser = argparse.ArgumentParser()
    parser.add_argument('options', nargs='+', action=DictAction)
    return parser.parse_args(options).options


def near_matches(name: str, names: Iterable[str]) -> str:
    """What may have been meant, in words.

    Args:
        name: A name that is none of ``names``.
        names: Those that there are.
    """
    names = sorted(names)
    holding = [known for known in names if name.lower() in known.lower()]
    near = [*holding, *difflib.get_close_matches(name, names, n=NEAR, cutoff=0.5)]
    near = list(dict.fromkeys(near))[:NEAR]
    return f'did you mean {", ".join(near)}?' if near else f'it has {", ".join(names[:NEAR])}, ...'
