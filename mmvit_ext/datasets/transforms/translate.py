"""Translation of an image by a share of its side, as ReViT's robustness tables have it."""

from collections.abc import Sequence

from mmcv.transforms import BaseTransform

from mmvit_ext.errors import UsageError
from mmvit_ext.registry import TRANSFORMS

from .canvas import blank_like

AXES = {'vertical': 0, 'horizontal': 1}


@TRANSFORMS.register_module()
class Translate(BaseTransform):
    """Moves an image along one side, as in the robustness tables of ReViT, arXiv 2402.11301.

    The image moves by ``round(share * side)`` pixels (Python's ``round``: halves go to the even
    number) and keeps its size: what leaves it is lost, and what is bared is filled. Only ``img``
    changes; boxes and masks are not moved, so this is for classification. In a test pipeline it
    belongs after resizing and cropping, right before the packing.

    Args:
        share: How far, as a share of the side, between -1 and 1. Positive moves to the right or
            down, negative to the left or up.
        direction: ``'horizontal'`` moves along the width, ``'vertical'`` along the height.
        fill: Value of the bared pixels, before the model's normalisation: one, or one for each
            channel in the image's order (BGR as mmcv loads it). 0, as in the paper, is black; the
            mean of the data preprocessor makes them 0 after normalisation.

    Raises:
        UsageError: On a share that leaves nothing of the image, or another direction.
    """

    def __init__(
        self, share: float, direction: str = 'horizontal', fill: float | Sequence[float] = 0
    ) -> None:
        if not -1 < share < 1:
            raise UsageError(f'share={share}: nothing of the image is left; give -1 < share < 1')
        if direction not in AXES:
            raise UsageError(f"direction='{direction}': choose from {', '.join(sorted(AXES))}")
        self.share = share
        self.direction = direction
        self.fill = fill

    def transform(self, results: dict) -> dict:
        """Moves ``results['img']``, an array of (H, W, C) or (H, W).

        Raises:
            UsageError: If it is no array, or ``fill`` does not fit it.
        """
        image = results['img']
        moved = blank_like(image, self.fill)
        axis = AXES[self.direction]
        side = image.shape[axis]
        pixels = round(self.share * side)
        ahead, back = max(pixels, 0), max(-pixels, 0)
        before = (slice(None),) * axis
        moved[(*before, slice(ahead, side - back))] = image[(*before, slice(back, side - ahead))]
        results['img'] = moved
        return results

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(share={self.share}, direction={self.direction!r}, '
            f'fill={self.fill})'
        )
