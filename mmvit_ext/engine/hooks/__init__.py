"""Hooks that the configs use; importing this package registers them."""

from . import checkpoint, finite_loss, iteration_seed, label_range

__all__ = ['checkpoint', 'finite_loss', 'iteration_seed', 'label_range']
