"""Parameters of a model, and multiply-adds of one image."""

import copy
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode


@dataclass(frozen=True)
class Complexity:
    """Size and work of a model.

    Attributes:
        parameters: Numbers in all parameters, frozen ones too.
        multiply_adds: Multiplications, each with its addition, for one image; papers call this
            figure FLOPs.
    """

    parameters: int
    multiply_adds: int

    def with_classifier(self, channels: int, classes: int) -> 'Complexity':
        """The same with a linear classifier behind pooled features.

        Args:
            channels: Channels of the features.
            classes: Classes told apart.
        """
        weights = channels * classes
        return Complexity(self.parameters + weights + classes, self.multiply_adds + weights)


def count(model: nn.Module, size: tuple[int, int] = (224, 224)) -> Complexity:
    """Counts a model in eval mode, without memory for its tensors.

    Counted are the matrix products that depend on the image: convolutions, linear layers, both
    products of attention, and block-circulant layers as their form computes them: the products
    of the transforms and frequencies, or the product with the whole matrix. Element-wise work,
    norms, pooling, interpolation and shifts are free. So is what depends on the weights alone,
    such as the spectrum of a circulant layer or a resampled position table: it costs the same
    for any number of images.

    Args:
        model: Takes images, (N, 3, H, W). It stays as it is: a copy is counted.
        size: Height and width of the image, in pixels.

    Returns:
        The model's complexity.
    """
    model = copy.deepcopy(model).to('meta')
    model.eval()  # some backbones of OpenMMLab return None here
    parameters = sum(p.numel() for p in model.parameters())
    with torch.no_grad():
        # makes what eval mode keeps from one run to the next
        model(_batch(1, size))
        one, two = (_products(model, _batch(images, size)) for images in (1, 2))
    # what a second image adds is the work of one
    return Complexity(parameters, two - one)


def _batch(images: int, size: tuple[int, int]) -> Tensor:
    return torch.zeros(images, 3, *size, device='meta')


def _products(model: nn.Module, batch: Tensor) -> int:
    """Multiply-adds of one run."""
    with FlopCounterMode(display=False) as counter:
        model(batch)
    # the counter takes a multiplication and its addition for two
    return counter.get_total_flops() // 2
