"""The shift that stands in for attention in ShiftViT: no parameter, no arithmetic.

Method: "When Shift Operation Meets Vision Transformer" (arXiv 2201.10801), section 3.2.
Origin of the method's code: microsoft/SPACH (``models/shiftvit.py``).
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def shift_channels(x: Tensor, group: int, pixels: int = 1) -> Tensor:
    """Moves four groups of channels left, right, up and down; the other channels stay.

    What leaves the map is dropped, what opens is zero.

    Args:
        x: (N, C, H, W).
        group: Channels of each of the four groups, the first ones of x; 4 * group <= C.
        pixels: How far the groups move; any number, a map smaller than it becomes zero.

    Returns:
        The shifted map, (N, C, H, W).
    """
    if pixels == 0:
        return x
    h, w = x.shape[2:]
    dy, dx = min(pixels, h), min(pixels, w)
    left, right, up, down, still = x.split([group] * 4 + [x.shape[1] - 4 * group], dim=1)
    return torch.cat(
        [
            F.pad(left[..., dx:], (0, dx)),
            F.pad(right[..., : w - dx], (dx, 0)),
            F.pad(up[..., dy:, :], (0, 0, 0, dy)),
            F.pad(down[..., : h - dy, :], (0, 0, dy, 0)),
            still,
        ],
        dim=1,
    )
