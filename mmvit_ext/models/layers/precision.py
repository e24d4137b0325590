"""Where half precision is not enough: scores before and in the softmax, position tables."""

import contextlib

import torch
from torch import Tensor


def full_precision(x: Tensor) -> Tensor:
    """Half precision to float32; float32 and float64 as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def without_autocast(x: Tensor) -> contextlib.AbstractContextManager:
    """A context in which products on the device of x keep their dtype, under autocast too."""
    device = x.device.type
    # the meta device knows no autocast
    if not torch.amp.is_autocast_available(device):
        return contextlib.nullcontext()
    return torch.autocast(device, enabled=False)
