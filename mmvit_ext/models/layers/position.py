"""Position tables: indices of relative positions, and resampling to another size."""

import torch
import torch.nn.functional as F
from torch import Tensor

from .precision import without_autocast


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
    with without_autocast(x):
        rows = _resampling(x.shape[2], size[0], 'bicubic', full)
        columns = _resampling(x.shape[3], size[1], 'bicubic', full)
        return (rows @ full @ columns.transpose(0, 1)).to(x.dtype)


def _resampling(source: int, target: int, mode: str, like: Tensor) -> Tensor:
    """(target, source): the linear map of torch's resampling along one axis."""
    unit = torch.eye(source, dtype=like.dtype, device=like.device)
    if mode == 'linear':
        # (source, source) -> (1, source, source): one channel a unit impulse
        impulses = F.interpolate(unit[None], target, mode='linear')[0]
    else:
        # (source, source) -> (1, source, source, 1), resampled along H
        impulses = F.interpolate(unit[None, :, :, None], (target, 1), mode=mode)[0, :, :, 0]
    return impulses.transpose(0, 1)


def resize_line(table: Tensor, length: int) -> Tensor:
    """Resamples a table along its rows, linearly, deterministic in the backward pass too.

    Args:
        table: (L, C); resampled in float32 (float64 stays), returned in its own dtype.
        length: Rows wanted.

    Returns:
        (length, C); the table itself if it has that length.
    """
    if table.shape[0] == length:
        return table
    full = table if table.dtype == torch.float64 else table.float()
    with without_autocast(table):
        return (_resampling(table.shape[0], length, 'linear', full) @ full).to(table.dtype)


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
