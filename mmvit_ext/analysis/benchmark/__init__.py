"""Time and memory of vision backbones, the package's and others', in ratios from one run."""

from .as_json import from_json, to_json
from .case import Case, parse_shape
from .measure import Settings, measure
from .page import page
from .plots import draw, picture_names
from .record import Result, Row, Run

__all__ = [
    'Case',
    'Result',
    'Row',
    'Run',
    'Settings',
    'draw',
    'from_json',
    'measure',
    'page',
    'parse_shape',
    'picture_names',
    'to_json',
]
