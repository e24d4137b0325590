"""Zero padding at the right and the bottom, so that any input size can be cut into patches."""

import torch.nn.functional as F
from torch import Tensor


def pad_to_multiple(x: Tensor, multiple: int, channels_last: bool = False) -> Tensor:
    """Pads a map with zeros at the right and bottom until both sides divide by ``multiple``.

    Args:
        x: (N, C, H, W), or (N, H, W, C) with ``channels_last``.
        multiple: The patch, stride or window side, in pixels of the map.
        channels_last: Where the channel axis lies.

    Returns:
        The padded map; x itself if nothing had to be added.
    """
    h, w = x.shape[1:3] if channels_last else x.shape[2:4]
    bottom, right = -h % multiple, -w % multiple
    if bottom == 0 and right == 0:
        return x
    pad = (0, right, 0, bottom)
    return F.pad(x, (0, 0, *pad) if channels_last else pad)
