"""Conversion of checkpoints from other code bases into this package's keys."""

from .convert import Converted, convert
from .unwrap import unwrap

__all__ = ['Converted', 'convert', 'unwrap']
