"""Tries that may fail: that a model cannot do something is a result, not the end of a run."""

import textwrap
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar('Result')


def attempt(call: Callable[[], Result]) -> tuple[Result | None, str | None]:
    """Calls a model's code, which may raise whatever its package pleases.

    Args:
        call: What to try.

    Returns:
        The result, and None; or None, and the error in a line.
    """
    try:
        return call(), None
    except Exception as error:
        text = f'{type(error).__name__}: {error}'
        return None, textwrap.shorten(text, width=120, placeholder=' ...')
