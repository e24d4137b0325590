"""What a model is put to: size of the batch, forward pass or training step, kind of numbers."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn as nn

from mmvit_ext.errors import UsageError


@dataclass(frozen=True)
class Case:
    """One way to run models.

    Attributes:
        shape: Images, channels, height and width in pixels.
        mode: 'forward', in eval mode and without gradients; or 'train': forward and backward pass
            in training mode, of the sum of the outputs' means, without an optimizer.
        dtype: Kind of numbers, by torch's name. The half kinds run under autocast, as in training
            with OpenMMLab: weights and inputs are float32.
    """

    shape: tuple[int, int, int, int]
    mode: str = 'forward'
    dtype: str = 'float32'

    @property
    def pixels(self) -> int:
        """Pixels of one image."""
        return self.shape[2] * self.shape[3]

    def title(self) -> str:
        """The case in words."""
        return f'{" x ".join(map(str, self.shape))}, {self.mode}, {self.dtype}'

    def step(self, model: nn.Module, device: torch.device) -> Callable[[], int]:
        """Sets a model up; what is returned runs it once and tells how many outputs came.

        Args:
            model: Takes images and gives a tuple of tensors; on the device.
            device: Where it runs.
        """
        training = self.mode == 'train'
        images = torch.rand(self.shape, device=device)
        half = self.dtype != 'float32'
        model.train(training)

        def run() -> int:
            with (
                torch.set_grad_enabled(training),
                torch.autocast(device.type, getattr(torch, self.dtype), enabled=half),
            ):
                outputs = model(images)
                if training:
                    loss = sum(output.float().mean() for output in outputs)
            if training:
                loss.backward()
                model.zero_grad(set_to_none=True)
            return len(outputs)

        return run


def parse_shape(text: str) -> tuple[int, int, int, int]:
    """Reads the size of a batch.

    Args:
        text: ``NxCxHxW`` such as ``1x3x800x1344``.

    Raises:
        UsageError: If it is not written so, or does not have three channels.
    """
    found = re.fullmatch(r'([1-9]\d*)x3x([1-9]\d*)x([1-9]\d*)', text)
    if found is None:
        raise UsageError(f'--shapes={text}: give images x 3 x height x width, such as 1x3x800x1344')
    images, height, width = map(int, found.groups())
    return images, 3, height, width
