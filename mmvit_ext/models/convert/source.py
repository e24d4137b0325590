"""What a source of weights has to tell: how to know it, and how its keys map to ours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

State = Mapping[str, Tensor]


@dataclass(frozen=True)
class Source:
    """One code base's way to name the weights of one family.

    Attributes:
        name: Short name, shown to users.
        matches: Whether a backbone's state dict comes from here, seen from its keys.
        translate: Turns that state dict, less the classifier, into our keys; leaves out buffers
            that are computed from the architecture.
        heads: Names that the classifier's linear layer may have.
    """

    name: str
    matches: Callable[[State], bool]
    translate: Callable[[State], dict[str, Tensor]]
    heads: tuple[str, ...]


def rename(key: str, replacements: Mapping[str, str]) -> str:
    """Applies each replacement once, in order."""
    for old, new in replacements.items():
        key = key.replace(old, new, 1)
    return key


def last_stage(state: State, group: str) -> int:
    """The highest stage number in keys such as ``layers.3.blocks.0.norm1.weight``."""
    return max(int(k.split('.')[1]) for k in state if k.startswith(f'{group}.'))


def token_grid(name: str, value: Tensor) -> Tensor:
    """Turns a position table of a square map into a grid.

    Args:
        name: Its name, for messages.
        value: (1, L, C), or already (1, C, H, W).

    Returns:
        (1, C, side, side).

    Raises:
        ValueError: If L is no square number.
    """
    if value.ndim != 3:
        return value
    side = round(value.shape[1] ** 0.5)
    if side**2 != value.shape[1]:
        raise ValueError(
            f'{name}: {value.shape[1]} tokens are no square map; give it as '
            '(1, channels, height, width)'
        )
    return value.transpose(1, 2).reshape(1, -1, side, side)
