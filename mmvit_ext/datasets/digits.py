"""Handwritten digits as drawing material: loading, the train/val split and smooth enlargement.

The source is scikit-learn's ``load_digits``: 1797 scanned digits of 8 x 8 pixels that come inside
its wheel, so nothing is downloaded.
"""

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

DIGIT_CLASSES: tuple[str, ...] = tuple(f'digit_{value}' for value in range(10))

SPLITS: tuple[str, ...] = ('train', 'val')

# Ink is where the smoothly enlarged picture is darker than this share of full ink.
INK_LEVEL = 0.5

_VAL_EVERY = 5
_PAD_CELLS = 2
_CELL = 8  # side, in pixels, of one source pixel in the enlarged picture


@dataclass(frozen=True)
class DigitPool:
    """The digits that one split may draw from.

    Attributes:
        pictures: Ink in [0, 1], float32 of shape (N, 8, 8).
        labels: Digit values 0..9, int64 of shape (N,).
        indices: Places in ``load_digits``, int64 of shape (N,).
    """

    pictures: np.ndarray
    labels: np.ndarray
    indices: np.ndarray

    def pick(self, rng: np.random.Generator, label: int) -> np.ndarray:
        """Draw one picture, shape (8, 8), of the digit ``label``."""
        return self.pictures[rng.choice(np.flatnonzero(self.labels == label))]


def _load_source() -> tuple[np.ndarray, np.ndarray]:
    """Read the 8 x 8 pictures and their labels from scikit-learn."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            'the handwritten digits come with scikit-learn, which is not installed: '
            'run `pip install "mmvit_ext[demo]"`'
        ) from error
    bunch = load_digits()
    return (bunch.images / 16).astype(np.float32), bunch.target.astype(np.int64)


def split_indices(labels: np.ndarray, split: str) -> np.ndarray:
    """Return the places in ``labels`` that belong to a split.

    Every fifth digit of each class is for validation, the rest for training, so the two share no
    digit and have the same class balance.

    Args:
        labels: Digit values, shape (N,).
        split: ``'train'`` or ``'val'``.

    Returns:
        Sorted places, int64 of shape (M,).

    Raises:
        ValueError: ``split`` is neither of the two.
    """
    if split not in SPLITS:
        raise ValueError(f'split={split!r}: use one of {", ".join(SPLITS)}')
    is_val = np.zeros(len(labels), dtype=bool)
    for value in np.unique(labels):
        is_val[np.flatnonzero(labels == value)[::_VAL_EVERY]] = True
    return np.flatnonzero(is_val if split == 'val' else ~is_val)


@lru_cache(maxsize=len(SPLITS))
def load_pool(split: str) -> DigitPool:
    """Load the digits of one split.

    Args:
        split: ``'train'`` or ``'val'``.

    Returns:
        The pool; it is cached, so treat its arrays as read-only.

    Raises:
        ImportError: scikit-learn is not installed.
        ValueError: ``split`` is neither of the two.
    """
    pictures, labels = _load_source()
    indices = split_indices(labels, split)
    return DigitPool(pictures[indices], labels[indices], indices)


def _enlarge(picture: np.ndarray, angle: float, stretch: float) -> np.ndarray:
    """Enlarge an (8, 8) picture smoothly, then turn and widen it about its centre."""
    padded = np.pad(picture, _PAD_CELLS)
    side = len(padded) * _CELL
    smooth = cv2.resize(padded, (side, side), interpolation=cv2.INTER_CUBIC)
    centre = (side - 1) / 2
    turn = cv2.getRotationMatrix2D((centre, centre), angle, 1.0)
    turn[0] *= stretch
    turn[0, 2] += (1 - stretch) * centre
    return cv2.warpAffine(smooth, turn, (side, side), flags=cv2.INTER_LINEAR)


def _ink_window(smooth: np.ndarray, margin: int) -> tuple[slice, slice]:
    """Return the rows and columns that hold ink, with ``margin`` pixels more on each side."""
    ink = smooth > INK_LEVEL
    windows = []
    for axis in (1, 0):
        places = np.flatnonzero(ink.any(axis=axis))
        windows.append(slice(max(0, places[0] - margin), places[-1] + 1 + margin))
    return windows[0], windows[1]


def render_digit(
    picture: np.ndarray, long_side: float, angle: float = 0.0, stretch: float = 1.0
) -> np.ndarray:
    """Draw a digit at a chosen size.

    Args:
        picture: Ink in [0, 1], shape (8, 8).
        long_side: Length in pixels of the longer side of the ink's box.
        angle: Anticlockwise turn in degrees.
        stretch: Factor on the width before scaling.

    Returns:
        Opacity in [0, 1], float32 of shape (h, w); ink is where it is above 0.5. About one pixel
        of soft edge is left around the ink.
    """
    smooth = _enlarge(picture, angle, stretch)
    rows, cols = _ink_window(smooth, margin=0)
    scale = long_side / max(rows.stop - rows.start, cols.stop - cols.start)
    window = smooth[_ink_window(smooth, margin=int(np.ceil(1 / scale)))]
    height, width = (max(1, round(length * scale)) for length in window.shape)
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    window = cv2.resize(window, (width, height), interpolation=method)
    # A source pixel spans `_CELL * scale` pixels: this gain keeps the edge about a pixel wide.
    gain = max(1.5, 0.9 * _CELL * scale)
    return np.clip(0.5 + gain * (window - INK_LEVEL), 0, 1).astype(np.float32)
