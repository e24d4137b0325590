"""Weights under which a mistake shows."""

from typing import TypeVar

import torch.nn as nn

Model = TypeVar('Model', bound=nn.Module)
TABLES = ('pos', 'token', 'bias_table')


def randomise(model: Model) -> Model:
    """Gives every parameter a value that matters, and sets eval mode.

    Fresh models hide mistakes: their norms, biases and tables do nothing. Weights become normal
    with the variance of their fan-in, scales of norms N(1, 0.1), all else N(0, 0.2); gates of
    residual attention stay as they are.

    Args:
        model: Any network; changed in place.

    Returns:
        The same model.
    """
    for name, parameter in model.named_parameters():
        if name.split('.')[-1] == 'alpha':
            continue
        if 'norm' in name and name.endswith('weight'):
            nn.init.normal_(parameter, 1.0, 0.1)
        elif parameter.ndim > 1 and not any(table in name for table in TABLES):
            nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
        else:
            nn.init.normal_(parameter, std=0.2)
    model.eval()  # some backbones of OpenMMLab return None here
    return model
