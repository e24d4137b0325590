"""The empty image that a moved or shrunken one is put on."""

from collections.abc import Sequence

import numpy as np

from mmvit_ext.errors import UsageError


def blank_like(image: np.ndarray, fill: float | Sequence[float]) -> np.ndarray:
    """An image of one value, or of one value a channel, in the shape and type of another.

    Args:
        image: (H, W, C) or (H, W), uint8 or floating point.
        fill: Value of every pixel, or one for each channel in the image's order, in the image's
            units. For uint8 it is rounded to the nearest whole number.

    Returns:
        A new array of the shape and type of ``image``.

    Raises:
        UsageError: If ``image`` is no array, or ``fill`` does not fit its channels or type.
    """
    if not isinstance(image, np.ndarray):
        raise UsageError(
            f'img={type(image).__name__}: not an array; put the transform where the pipeline '
            'holds numpy images'
        )
    values = np.asarray(fill, dtype=float)
    channels = image.shape[2] if image.ndim == 3 else 1
    if values.ndim > 1 or values.size not in (1, channels):
        raise UsageError(
            f'fill={fill}: {values.size} values for {channels} channels; give one, or one a channel'
        )
    if image.dtype == np.uint8:
        values = np.rint(values)
        if not ((values >= 0) & (values <= 255)).all():
            raise UsageError(f'fill={fill}: not in 0..255, the range of an 8-bit image')
    blank = np.empty_like(image, order='C')
    blank[...] = values
    return blank
