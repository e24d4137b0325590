"""Shrinking of an image on its own canvas, as ReViT's robustness tables have it."""

from collections.abc import Sequence

import numpy as np
from mmcv.transforms import BaseTransform
from PIL import Image

from mmvit_ext.errors import UsageError
from mmvit_ext.registry import TRANSFORMS

from .canvas import blank_like

INTERPOLATIONS = ('nearest', 'bilinear', 'bicubic', 'lanczos', 'box', 'hamming')


@TRANSFORMS.register_module()
class Shrink(BaseTransform):
    """Shrinks what an image shows, as in the robustness tables of ReViT, arXiv 2402.11301.

    Each side loses ``round(share * side)`` pixels (Python's ``round``: halves go to the even
    number), as many as :class:`Translate` moves by, but keeps one at least. The small image is put
    on the middle of a filled canvas of the old size; of an odd rest, the right and the bottom get
    the pixel more. Pillow resizes, whose filters widen with the shrinking and so do not alias.
    Only ``img`` changes; boxes and masks are not moved, so this is for classification. In a test
    pipeline it belongs after resizing and cropping, right before the packing.

    Args:
        share: By how much the sides shrink, from 0 to below 1: 0.6 leaves 40 % of each.
        fill: Value of the canvas, before the model's normalisation: one, or one for each channel
            in the image's order (BGR as mmcv loads it). 0, as in the paper, is black; the mean of
            the data preprocessor makes it 0 after normalisation.
        interpolation: One of Pillow's filters: ``'nearest'``, ``'bilinear'``, ``'bicubic'``,
            ``'lanczos'``, ``'box'`` or ``'hamming'``.

    Raises:
        UsageError: On a share that leaves nothing of the image, or an unknown interpolation.
    """

    def __init__(
        self,
        share: float,
        fill: float | Sequence[float] = 0,
        interpolation: str = 'bicubic',
    ) -> None:
        if not 0 <= share < 1:
            raise UsageError(
                f'share={share}: nothing of the image is left, or it grows; give 0 <= share < 1'
            )
        if interpolation not in INTERPOLATIONS:
            known = ', '.join(INTERPOLATIONS)
            raise UsageError(f"interpolation='{interpolation}': choose from {known}")
        self.share = share
        self.fill = fill
        self.interpolation = interpolation

    def transform(self, results: dict) -> dict:
        """Shrinks ``results['img']``, uint8 or floating point, of (H, W, C) or (H, W).

        Raises:
            UsageError: If it is no array, or ``fill`` does not fit it.
        """
        image = results['img']
        canvas = blank_like(image, self.fill)
        height, width = (max(1, side - round(self.share * side)) for side in image.shape[:2])
        top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
        canvas[top : top + height, left : left + width] = self._resize(image, height, width)
        results['img'] = canvas
        return results

    def _resize(self, image: np.ndarray, height: int, width: int) -> np.ndarray:
        """Channel by channel, as Pillow takes neither float colours nor any number of them."""
        method = Image.Resampling[self.interpolation.upper()]
        kind = np.uint8 if image.dtype == np.uint8 else np.float32
        planes = [
            np.asarray(Image.fromarray(plane).resize((width, height), method))
            for plane in np.moveaxis(np.atleast_3d(image), 2, 0).astype(kind, order='C')
        ]
        return np.stack(planes, axis=-1).reshape(height, width, *image.shape[2:])

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(share={self.share}, fill={self.fill}, '
            f'interpolation={self.interpolation!r})'
        )
