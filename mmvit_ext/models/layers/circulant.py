"""A linear layer whose matrix consists of circulant blocks.

Method: "Augmented Shortcuts for Vision Transformers" (arXiv 2106.15941), section 3.3. Origin of
the method's code: huawei-noah/Efficient-AI-Backbones (``augvit_pytorch/models/augvit.py``).
"""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

FORMS = ('fourier', 'materialised')
# Channels from which on the Fourier form is faster; docs/circulant.md has the measurement.
FOURIER_FROM = 192


class BlockCirculant(nn.Module):
    """``y = P x + bias`` where P consists of circulant blocks of side k.

    The block in row p and column q of P is ``C[r, c] = weight[p, q, (r - c) mod k]``. Both forms
    of the product are exact: 'materialised' builds P and multiplies by it; 'fourier' multiplies
    the discrete Fourier transforms along k, b_out * b_in numbers a frequency instead of
    (b_out * k) * (b_in * k), with the transforms as small real matrix products, so that no
    complex tensor meets autocast, export or a device without them.

    What depends on the weights alone is kept between forward passes in eval mode, where no
    gradient of the weights is asked for, and dropped when they change or training starts.

    Args:
        in_features: Channels in, a multiple of ``side``.
        out_features: Channels out, a multiple of ``side``.
        side: Side k of a circulant block.
        form: 'fourier' or 'materialised'; default: by ``in_features``, whichever is faster.

    Raises:
        ValueError: If a width does not divide by ``side``, or the form is unknown.
    """

    def __init__(
        self, in_features: int, out_features: int, side: int, form: str | None = None
    ) -> None:
        super().__init__()
        if side < 1 or in_features % side or out_features % side:
            raise ValueError(
                f'circulant blocks of side {side} do not tile a matrix of {out_features} x '
                f'{in_features}; choose a number of blocks that divides the channels'
            )
        form = form or ('fourier' if in_features >= FOURIER_FROM else 'materialised')
        if form not in FORMS:
            raise ValueError(f"form='{form}': choose from {', '.join(FORMS)}")
        self.form = form
        self.side = side
        self.in_features = in_features
        self.weight = nn.Parameter(torch.empty(out_features // side, in_features // side, side))
        self.bias = nn.Parameter(torch.empty(out_features))
        if form == 'fourier':
            self.register_buffer('dft', real_dft(side), persistent=False)
        else:
            self.register_buffer('index', circulant_index(side), persistent=False)
        self._kept: tuple | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialises as the authors do: weights and bias uniform in +-1 / sqrt(in_features)."""
        bound = 1 / math.sqrt(self.in_features)
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        operator = self._operator()
        if self.form == 'materialised':
            return F.linear(x, operator, self.bias)
        return self._through_frequencies(x, operator)

    def _through_frequencies(self, x: Tensor, spectrum: Tensor) -> Tensor:
        *front, channels = x.shape
        blocks = channels // self.side
        # (..., b_in * k) -> (tokens * b_in, k) -> (tokens, b_in, 2, frequencies)
        waves = (x.reshape(-1, self.side) @ self.dft).view(-1, blocks, 2, spectrum.shape[0])
        # (tokens, b_in, 2, frequencies) -> (frequencies, tokens, b_in * 2)
        waves = waves.permute(3, 0, 1, 2).flatten(2)
        # (frequencies, tokens, b_in * 2) @ (frequencies, b_in * 2, b_out * 2)
        waves = waves @ spectrum.to(waves.dtype)
        # -> (tokens, b_out, 2 * frequencies)
        waves = waves.view(*waves.shape[:2], -1, 2).permute(1, 2, 3, 0).flatten(2)
        # (tokens, b_out, k) -> (..., b_out * k)
        out = (waves @ self.dft.transpose(0, 1)).reshape(*front, -1)
        return out + self.bias

    def _operator(self) -> Tensor:
        """The matrix or the spectrum of the weights, kept where that is safe."""
        weight = self.weight
        needs_gradient = torch.is_grad_enabled() and weight.requires_grad
        if self.training or needs_gradient or torch.compiler.is_compiling():
            return self._build()
        state = (weight.data_ptr(), weight._version, weight.dtype, weight.device)
        if self._kept is None or self._kept[0] != state:
            # a tensor born in inference mode could not be used outside it
            with torch.inference_mode(False), torch.no_grad():
                self._kept = (state, self._build())
        return self._kept[1]

    def _build(self) -> Tensor:
        return self._spectrum() if self.form == 'fourier' else self._matrix()

    def _matrix(self) -> Tensor:
        """P, (out_features, in_features)."""
        rows, columns, side = self.weight.shape
        # (b_out, b_in, k, k) -> (b_out, k, b_in, k) -> (b_out * k, b_in * k)
        blocks = self.weight[:, :, self.index]
        return blocks.transpose(1, 2).reshape(rows * side, columns * side)

    def _spectrum(self) -> Tensor:
        """The product of each frequency as a real matrix, (frequencies, b_in * 2, b_out * 2).

        Holds the scaling of the inverse transform too: frequencies that stand for a conjugate
        pair count twice, all are divided by k.
        """
        rows, columns, side = self.weight.shape
        frequencies = side // 2 + 1
        # (b_out, b_in, 2, frequencies), real part and imaginary part
        waves = (self.weight @ self.dft).view(rows, columns, 2, frequencies)
        scale = waves.new_full((frequencies,), 2 / side)
        scale[0] = 1 / side
        if side % 2 == 0:
            scale[-1] = 1 / side
        real, imaginary = (waves * scale).unbind(2)
        # (x_re + i x_im)(re + i im): rows are x's parts, columns the product's
        from_real = torch.stack([real, imaginary], dim=-1)
        from_imaginary = torch.stack([-imaginary, real], dim=-1)
        # (b_out, b_in, frequencies, 2 of x, 2 of y) -> (frequencies, b_in, 2, b_out, 2)
        joined = torch.stack([from_real, from_imaginary], dim=-2).permute(2, 1, 3, 0, 4)
        return joined.reshape(frequencies, columns * 2, rows * 2)

    def train(self, mode: bool = True) -> 'BlockCirculant':
        """Sets the mode; what was kept for eval mode is dropped in training."""
        if mode:
            self._kept = None
        return super().train(mode)

    def __getstate__(self) -> dict:
        """What copies and pickles hold: not what can be computed again."""
        return {**self.__dict__, '_kept': None}

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        rows, columns, side = self.weight.shape
        return f'{columns * side}, {rows * side}, side={side}, form={self.form}'


def circulant_index(side: int) -> Tensor:
    """(side, side) int64: which number of its vector stands at row r and column c of a block."""
    position = torch.arange(side)
    return (position[:, None] - position[None, :]) % side


def real_dft(side: int) -> Tensor:
    """The discrete Fourier transform of a real vector as a matrix.

    Args:
        side: Length of the vector.

    Returns:
        (side, 2 * frequencies), float32, frequencies = side // 2 + 1: ``x @ matrix`` holds the
        real parts (cosines), then the imaginary parts (minus sines).
    """
    # whole numbers keep the angles exact; numpy, as devices without float64 have to do
    turns = np.outer(np.arange(side), np.arange(side // 2 + 1)) % side
    angles = 2 * np.pi * turns / side
    matrix = np.concatenate([np.cos(angles), -np.sin(angles)], axis=1)
    return torch.tensor(matrix.astype(np.float32))
