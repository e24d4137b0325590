"""Takes a checkpoint out of its wrappers and splits backbone from head."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

# Under which name training scripts keep the weights in a checkpoint, the most common first.
WRAPPERS = ('state_dict', 'model', 'model_state', 'model_ema', 'state_dict_ema')


def unwrap(checkpoint: Mapping[str, Any]) -> dict[str, Tensor]:
    """Finds the weights in a checkpoint.

    Args:
        checkpoint: A state dict, or a dict that holds one under a usual name.

    Returns:
        The tensors by name, without a ``module.`` in front.

    Raises:
        ValueError: If there are no tensors.
    """
    for wrapper in WRAPPERS:
        if isinstance(checkpoint.get(wrapper), Mapping):
            return unwrap(checkpoint[wrapper])
    tensors = {k: v for k, v in checkpoint.items() if isinstance(v, Tensor)}
    if not tensors:
        names = ', '.join(map(str, list(checkpoint)[:5])) or 'nothing'
        raise ValueError(f'no weights found: the checkpoint holds {names}')
    return strip_prefix(tensors, 'module.')


def strip_prefix(state_dict: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Takes ``prefix`` off the names, if all have it."""
    if all(k.startswith(prefix) for k in state_dict):
        return {k[len(prefix) :]: v for k, v in state_dict.items()}
    return dict(state_dict)


def split_backbone(state_dict: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Splits the weights of a whole model.

    Args:
        state_dict: Weights of a classifier, detector or segmentor of OpenMMLab (names start with
            ``backbone.``), or of a bare network.

    Returns:
        The backbone's weights without prefix, and all others.
    """
    prefix = 'backbone.'
    backbone = {k[len(prefix) :]: v for k, v in state_dict.items() if k.startswith(prefix)}
    if not backbone:
        return dict(state_dict), {}
    return backbone, {k: v for k, v in state_dict.items() if not k.startswith(prefix)}
