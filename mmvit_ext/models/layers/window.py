"""Cutting a map into windows and back, and the mask of shifted windows.

Method: Swin (arXiv 2103.14030), section 3.2. Maps are channels-last throughout.
"""

import functools

import torch
from torch import Tensor

# What keeps tokens of different regions apart in a shifted window: finite, so that half precision
# holds it, and the value of Swin's authors, mmdet and timm.
MASKED = -100.0


def window_partition(x: Tensor, window: int) -> Tensor:
    """Cuts maps into square windows.

    Args:
        x: (N, H, W, C); both sides divide by ``window``.
        window: Side of a window.

    Returns:
        (N * windows, window^2, C), windows of an image row by row.
    """
    n, h, w, c = x.shape
    x = x.view(n, h // window, window, w // window, window, c)
    # (N, rows, y, columns, x, C) -> (N, rows, columns, y, x, C)
    return x.transpose(2, 3).reshape(-1, window * window, c)


def window_reverse(windows: Tensor, window: int, h: int, w: int) -> Tensor:
    """Puts windows together again: the inverse of :func:`window_partition`.

    Args:
        windows: (N * windows, window^2, C).
        window: Side of a window.
        h: Height of the map, a multiple of ``window``.
        w: Width of the map, a multiple of ``window``.

    Returns:
        (N, H, W, C).
    """
    c = windows.shape[-1]
    x = windows.view(-1, h // window, w // window, window, window, c)
    # (N, rows, columns, y, x, C) -> (N, rows, y, columns, x, C)
    return x.transpose(2, 3).reshape(-1, h, w, c)


def shift_mask(x: Tensor, window: int, shift: int) -> Tensor:
    """What is added to the scores of windows that a cyclic shift cut from several regions.

    Args:
        x: The shifted map, (N, H, W, C); gives size, dtype and device.
        window: Side of a window.
        shift: Pixels by which the map was rolled up and left, 0 < shift < window.

    Returns:
        (windows, window^2, window^2): 0 within a region, -100 between two; float32 at least.
    """
    dtype = torch.promote_types(x.dtype, torch.float32)
    key = (x.shape[1] // window, x.shape[2] // window, window, shift, dtype, x.device)
    # A cached tensor must be a real one: fake and traced tensors belong to their trace.
    if torch.compiler.is_compiling() or type(x) is not Tensor:
        return _build_shift_mask(*key)
    return _cached_shift_mask(*key)


def _build_shift_mask(
    rows: int, columns: int, window: int, shift: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    region_y = _axis_regions(rows, window, shift, device)
    region_x = _axis_regions(columns, window, shift, device)
    # (rows, 1, window, 1) and (1, columns, 1, window) -> (windows, window^2)
    regions = region_y[:, None, :, None] * 2 + region_x[None, :, None, :]
    regions = regions.reshape(rows * columns, window * window)
    apart = regions[:, :, None] != regions[:, None, :]
    return apart.to(dtype) * MASKED


def _axis_regions(count: int, window: int, shift: int, device: torch.device) -> Tensor:
    """(count, window): 1 where a position was rolled in from the other end, else 0.

    Only the last window of an axis holds such positions, so two labels tell its regions apart.
    """
    position = torch.arange(count * window, device=device)
    return (position >= count * window - shift).long().view(count, window)


@functools.lru_cache(maxsize=16)
def _cached_shift_mask(*key) -> Tensor:
    # A tensor born in inference mode could not be used in training later.
    with torch.inference_mode(False):
        return _build_shift_mask(*key)
