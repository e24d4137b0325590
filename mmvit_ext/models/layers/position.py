"""Position tables: indices of relative positions, and resampling to another size."""

import torch
import torch.nn.functional as F
from torch import Tensor


def relative_position_index(window: int) -> Tensor:
    """The row of the bias table that belongs to each pair of tokens in a square window.

    Row ``(dy + window - 1) * (2 * window - 1) + (dx + window - 1)`` holds the offset (dy, dx)
    from key to query, as in Swin (arXiv 2103.14030, section 3.2).

    Args:
        window: Side of the window, in tokens.

    Returns:
        (window^2, window^2) int64, queries by keys.
    """
    y, x = torch.meshgrid(torch.arange(window), torch.arange(window), indexing='ij')
    y, x = y.flatten(), x.flatten()
    dy = y[:, None] - y[None, :] + window - 1
    dx = x[:, None] - x[None, :] + window - 1
    return dy * (2 * window - 1) + dx


def resize_grid(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Resamples maps bicubically to ``size``.

    Equal to ``F.interpolate(x, size, mode='bicubic')``, but written as two matrix products: their
    backward is deterministic on every device, that of the interpolation kernel is not on CUDA.

    Args:
        x: (N, C, H, W); resampled in float32 (float64 stays), returned in its own dtype.
        size: Height and width wanted.

    Returns:
        (N, C, *size); x itself if it has that size.
    """
    if tuple(x.shape[2:]) == tuple(size):
        return x
    full = x if x.dtype == torch.float64 else x.float()
    # autocast would run the products, and with them the table, in half precision
    with torch.autocast(x.device.type, enabled=False):
        rows = _bicubic_matrix(x.shape[2], size[0], full)
        columns = _bicubic_matrix(x.shape[3], size[1], full)
        return (rows @ full @ columns.transpose(0, 1)).to(x.dtype)


def _bicubic_matrix(source: int, target: int, like: Tensor) -> Tensor:
    """(target, source): the linear map of a bicubic resampling along one axis."""
    unit = torch.eye(source, dtype=like.dtype, device=like.device)
    # (source, source) -> (1, source, source, 1): one channel a unit impulse, resampled along H
    impulses = F.interpolate(unit[None, :, :, None], (target, 1), mode='bicubic')
    return impulses[0, :, :, 0].transpose(0, 1)


def resize_bias_table(table: Tensor, window: int) -> Tensor:
    """Resamples a relative position bias table to another window, each head by itself.

    Args:
        table: ((2 * w - 1)^2, heads), of a square window w.
        window: The window wanted, in tokens.

    Returns:
        ((2 * window - 1)^2, heads).

    Raises:
        ValueError: If the rows of ``table`` are not those of a square window.
    """
    rows, heads = table.shape
    source, target = round(rows**0.5), 2 * window - 1
    if source**2 != rows:
        raise ValueError(f'a bias table of {rows} rows belongs to no square window')
    # (rows, heads) -> (1, heads, source, source) -> (target^2, heads)
    grid = table.transpose(0, 1).reshape(1, heads, source, source)
    return resize_grid(grid, (target, target)).reshape(heads, -1).transpose(0, 1).contiguous()
