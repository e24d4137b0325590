"""Boxes of COCO annotations that no detector can learn from."""

from collections.abc import Sequence
from math import inf


def box_fault(box: Sequence[float] | None, width: int, height: int) -> str | None:
    """What makes a box impossible; mmdet leaves out the same ones, without a word.

    Args:
        box: Left, top, width and height in pixels, as COCO's ``bbox``.
        width: Width of the image in pixels.
        height: Height of the image in pixels.

    Returns:
        A few words that can follow "box", or None for a good box. A box that is only partly
        outside the image is good.
    """
    try:
        x, y, w, h = box
        # written so that NaN fails
        if not (0 < w < inf and 0 < h < inf):
            return 'of no width or height'
        if not (x < width and y < height and x + w > 0 and y + h > 0):
            return 'outside the image'
        return 'thinner than a pixel' if w < 1 or h < 1 else None
    except (TypeError, ValueError):
        return 'without four numbers'
