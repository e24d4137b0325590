"""Whether scores are kept as they are or in factors."""

from collections.abc import Sequence

import torch

FORMS = ('auto', 'dense', 'factored')
# Bytes of scores that may exist at once; more go in factors.
DENSE_BYTES = 2**30
# How many tensors of the size of a block's scores exist at once in a forward pass (carried ones,
# new ones, attention weights), and how many of each block wait for a backward pass.
PASSING, KEPT = 3, 4


def checked_form(owner: str, form: str) -> str:
    """The form, if it is one.

    Args:
        owner: Name of the backbone, for the message.
        form: 'auto', 'dense' or 'factored'.

    Raises:
        ValueError: If it is none of these.
    """
    if form not in FORMS:
        raise ValueError(f"{owner}: scores='{form}': choose from {', '.join(FORMS)}")
    return form


def in_factors(form: str, counts: Sequence[int], chained: Sequence[bool]) -> list[bool]:
    """Chooses for each block whether its scores are kept in factors.

    Scores that fit in memory are faster as they are: factors of carried scores grow from block to
    block, and multiplying them again costs more than reading the scores. From factors the scores
    can be built whenever they are small enough, but not the other way, so a block before one that
    needs factors uses them too.

    Args:
        form: 'auto' (by memory), 'dense' or 'factored'.
        counts: Scores of each block, over the batch and all heads.
        chained: Whether each block hands its scores to the next.

    Returns:
        For each block, whether its scores are kept in factors.
    """
    if form != 'auto':
        return [form == 'factored'] * len(counts)
    training = torch.is_grad_enabled()
    size = torch.float32.itemsize * (KEPT * len(counts) if training else PASSING)
    choices, needed = [], False
    for count, chain in zip(reversed(counts), reversed(chained)):
        needed = count * size > DENSE_BYTES or (chain and needed)
        choices.append(needed)
    return choices[::-1]
