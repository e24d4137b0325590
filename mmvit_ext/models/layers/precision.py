"""Where half precision is not enough: scores before and in the softmax, position tables."""

import contextlib
from collections.abc import Callable
from functools import partial

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


def autocast_as_now(x: Tensor) -> Callable[[], contextlib.AbstractContextManager]:
    """A maker of contexts with the autocast that is on now, for a backward pass to compute again.

    Args:
        x: A tensor on the device.
    """
    device = x.device.type
    if not torch.amp.is_autocast_available(device):
        return contextlib.nullcontext
    dtype, enabled = torch.get_autocast_dtype(device), torch.is_autocast_enabled(device)
    return partial(torch.autocast, device, dtype, enabled)
