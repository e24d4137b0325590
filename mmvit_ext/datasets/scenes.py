"""Pictures of digits on textured backgrounds, with the exact mask and box of each digit.

All randomness comes from the generator handed in, so the same generator state gives the same
picture. Colours are in BGR order, as OpenCV and the OpenMMLab loaders have them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from .digits import DigitPool, render_digit

# All lengths below are shares of the shorter side of the picture.
_DIGIT_SIDE = (0.15, 0.40)
_CROP_SIDE = (0.70, 0.95)
_CROWD_CELL = 0.085

_MIN_DIGIT = 8
_MIN_CROWD_CELL = 6
_CROWD_ROWS = (3, 6)
_GAP = 2
_TRIES = 30
_DARK = (15.0, 95.0)
_LIGHT = (160.0, 240.0)
_CONTRAST = 100.0
_BGR_LUMA = np.array([0.114, 0.587, 0.299])


@dataclass(frozen=True)
class Instance:
    """One annotated object.

    Attributes:
        label: Digit value 0..9.
        mask: Visible ink, bool of shape (H, W); for a crowd, the ground the cluster covers.
        crowd: Whether this is a cluster of small digits instead of one digit.
    """

    label: int
    mask: np.ndarray
    crowd: bool = False

    @property
    def bbox(self) -> tuple[int, int, int, int]:
        """The tight box of the mask as (x, y, width, height) in pixels."""
        rows = np.flatnonzero(self.mask.any(axis=1))
        cols = np.flatnonzero(self.mask.any(axis=0))
        x, y = int(cols[0]), int(rows[0])
        return x, y, int(cols[-1]) - x + 1, int(rows[-1]) - y + 1


@dataclass(frozen=True)
class Scene:
    """A picture and what is in it.

    Attributes:
        image: BGR picture, uint8 of shape (H, W, 3).
        instances: Objects whose masks do not overlap.
    """

    image: np.ndarray
    instances: tuple[Instance, ...]


def _ramp(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Return the distance in pixels along a random direction, shape (H, W)."""
    angle = rng.uniform(0, 2 * np.pi)
    rows, cols = np.mgrid[:height, :width].astype(np.float32)
    return cols * np.cos(angle) + rows * np.sin(angle)


def _gradient(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """A linear change from one border to the opposite one."""
    ramp = _ramp(rng, height, width)
    return (ramp - ramp.min()) / np.ptp(ramp)


def _stripes(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Soft parallel stripes in a random direction."""
    period = min(height, width) * rng.uniform(0.08, 0.3)
    return 0.5 + 0.5 * np.sin(_ramp(rng, height, width) * (2 * np.pi / period))


def _clouds(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Smooth random noise a few cells across."""
    coarse = rng.random((rng.integers(4, 13), rng.integers(4, 13)), dtype=np.float32)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).clip(0, 1)


def _blobs(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Blurred discs of random strength."""
    field = np.zeros((height, width), np.float32)
    short = min(height, width)
    for _ in range(rng.integers(8, 21)):
        centre = (int(rng.integers(width)), int(rng.integers(height)))
        radius = round(short * rng.uniform(0.04, 0.2))
        cv2.circle(field, centre, radius, float(rng.uniform(0.3, 1.0)), thickness=-1)
    return cv2.GaussianBlur(field, (0, 0), sigmaX=max(1.0, short * 0.012))


_TEXTURES: tuple[Callable[[np.random.Generator, int, int], np.ndarray], ...] = (
    _gradient,
    _stripes,
    _clouds,
    _blobs,
)


def _random_colour(rng: np.random.Generator, low: float, high: float) -> np.ndarray:
    """Draw a BGR colour, shape (3,), whose luminance lies between ``low`` and ``high``."""
    draws = rng.uniform(0, 255, (64, 3))
    luma = draws @ _BGR_LUMA
    fitting = np.flatnonzero((luma >= low) & (luma <= high))
    return draws[fitting[0]] if len(fitting) else np.full(3, (low + high) / 2)


def make_background(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Draw a textured background that is dark all over or light all over.

    Args:
        rng: Source of randomness.
        size: Height and width in pixels.

    Returns:
        BGR picture, float64 of shape (H, W, 3), values in [0, 255].
    """
    field = _TEXTURES[rng.integers(len(_TEXTURES))](rng, *size)[..., None]
    band = _DARK if rng.random() < 0.5 else _LIGHT
    first, second = _random_colour(rng, *band), _random_colour(rng, *band)
    return first + (second - first) * field


class _Canvas:
    """A picture being composed: its pixels, the boxes already taken and the objects so far."""

    def __init__(self, rng: np.random.Generator, size: tuple[int, int]) -> None:
        self.rng = rng
        self.image = make_background(rng, size)
        self.taken: list[tuple[int, int, int, int]] = []
        self.instances: list[Instance] = []

    def find_spot(self, height: int, width: int) -> tuple[int, int] | None:
        """Draw a top left corner (y, x); None when that spot is taken or outside the frame."""
        room_y, room_x = (
            full - part - 2 * _GAP for full, part in zip(self.image.shape[:2], (height, width))
        )
        if room_y < 0 or room_x < 0:
            return None
        y = _GAP + int(self.rng.integers(room_y + 1))
        x = _GAP + int(self.rng.integers(room_x + 1))
        for top, left, bottom, right in self.taken:
            apart_y = y >= bottom + _GAP or top >= y + height + _GAP
            apart_x = x >= right + _GAP or left >= x + width + _GAP
            if not (apart_y or apart_x):
                return None
        return y, x

    def reserve(self, y: int, x: int, height: int, width: int) -> None:
        """Keep later objects out of a box."""
        self.taken.append((y, x, y + height, x + width))

    def contrasting_colour(self, y: int, x: int, height: int, width: int) -> np.ndarray:
        """Draw a colour that stands out from the mean luminance under a box."""
        under = self.image[y : y + height, x : x + width].mean(axis=(0, 1)) @ _BGR_LUMA
        if under < 128:
            return _random_colour(self.rng, under + _CONTRAST, 255)
        return _random_colour(self.rng, 0, under - _CONTRAST)

    def paint(self, alpha: np.ndarray, y: int, x: int, colour: np.ndarray) -> np.ndarray:
        """Blend a digit in and return its ink as a bool mask of shape (H, W)."""
        window = slice(y, y + alpha.shape[0]), slice(x, x + alpha.shape[1])
        self.image[window] += alpha[..., None] * (colour - self.image[window])
        mask = np.zeros(self.image.shape[:2], bool)
        mask[window] = alpha > 0.5
        return mask

    def finish(self) -> Scene:
        """Add mild sensor noise and round to 8 bits."""
        noise = self.rng.normal(0, self.rng.uniform(2, 6), self.image.shape[:2])
        image = np.clip(np.rint(self.image + noise[..., None]), 0, 255).astype(np.uint8)
        return Scene(image, tuple(self.instances))


def _random_glyph(
    rng: np.random.Generator, pool: DigitPool, label: int, long_side: float
) -> np.ndarray:
    """Draw one digit of a class with a mild random turn and stretch; opacity of shape (h, w)."""
    picture = pool.pick(rng, label)
    return render_digit(picture, long_side, rng.uniform(-12, 12), rng.uniform(0.85, 1.15))


def _add_digit(canvas: _Canvas, pool: DigitPool, label: int, shares: tuple[float, float]) -> None:
    """Add one digit where there is room; leave the canvas alone when it is too full."""
    rng = canvas.rng
    short = min(canvas.image.shape[:2])
    low, high = (max(_MIN_DIGIT, share * short) for share in shares)
    for _ in range(_TRIES):
        # Even in the logarithm, so that small digits are as common as large ones.
        alpha = _random_glyph(rng, pool, label, np.exp(rng.uniform(np.log(low), np.log(high))))
        spot = canvas.find_spot(*alpha.shape)
        if spot is not None:
            colour = canvas.contrasting_colour(*spot, *alpha.shape)
            mask = canvas.paint(alpha, *spot, colour)
            canvas.reserve(*spot, *alpha.shape)
            canvas.instances.append(Instance(label, mask))
            return


def _close(ink: np.ndarray, gap: int) -> np.ndarray:
    """Join the digits of a crowd into the ground they cover, as COCO's crowd masks do.

    Args:
        ink: Bool array of shape (H, W).
        gap: Width in pixels of the spaces to fill.

    Returns:
        Bool array of shape (H, W) with the same tight box.
    """
    # An even kernel would shift the mask, and without padding it would run on to the frame.
    kernel = np.ones((gap | 1, gap | 1), np.uint8)
    padded = np.pad(ink.astype(np.uint8), gap)
    return cv2.morphologyEx(padded, cv2.MORPH_CLOSE, kernel)[gap:-gap, gap:-gap].astype(bool)


def _add_crowd(canvas: _Canvas, pool: DigitPool, label: int) -> None:
    """Add a dense block of small digits of one class as a single crowd object."""
    rng = canvas.rng
    short = min(canvas.image.shape[:2])
    cell = max(_MIN_CROWD_CELL, round(_CROWD_CELL * short))
    fewest, most = _CROWD_ROWS
    most = min(most, (short - 2 * _GAP) // cell)
    rows, cols = (int(count) for count in rng.integers(fewest, most + 1, size=2))
    block = rows * cell, cols * cell
    spot = canvas.find_spot(*block)  # the canvas is bare and the block fits it
    colour = canvas.contrasting_colour(*spot, *block)
    ink = np.zeros(canvas.image.shape[:2], bool)
    for row, col in np.ndindex(rows, cols):
        alpha = _random_glyph(rng, pool, label, cell - 2)[:cell, :cell]
        slack_y, slack_x = cell - alpha.shape[0], cell - alpha.shape[1]
        y = spot[0] + row * cell + int(rng.integers(slack_y + 1))
        x = spot[1] + col * cell + int(rng.integers(slack_x + 1))
        ink |= canvas.paint(alpha, y, x, colour)
    canvas.reserve(*spot, *block)
    canvas.instances.append(Instance(label, _close(ink, cell), crowd=True))


def make_scene(
    pool: DigitPool, rng: np.random.Generator, size: tuple[int, int], kind: str = 'digits'
) -> Scene:
    """Compose a picture with several digits.

    Args:
        pool: Digits to draw from.
        rng: Source of randomness.
        size: Height and width in pixels, each at least 32.
        kind: ``'digits'`` for 2 to 6 digits, ``'crowd'`` for a crowd and 1 to 3 digits, or
            ``'empty'`` for the background alone.

    Returns:
        The picture and its objects. A picture too full for another digit holds fewer.

    Raises:
        ValueError: ``kind`` is none of the three.
    """
    if kind not in ('digits', 'crowd', 'empty'):
        raise ValueError(f"kind={kind!r}: use one of 'digits', 'crowd', 'empty'")
    canvas = _Canvas(rng, size)
    count = {'digits': rng.integers(2, 7), 'crowd': rng.integers(1, 4), 'empty': 0}[kind]
    if kind == 'crowd':
        _add_crowd(canvas, pool, int(rng.integers(10)))
    for _ in range(count):
        _add_digit(canvas, pool, int(rng.integers(10)), _DIGIT_SIDE)
    return canvas.finish()


def make_crop(
    pool: DigitPool, rng: np.random.Generator, size: tuple[int, int], label: int
) -> Scene:
    """Compose a picture of one large digit.

    Args:
        pool: Digits to draw from.
        rng: Source of randomness.
        size: Height and width in pixels, each at least 32.
        label: Digit value 0..9.

    Returns:
        The picture and its one object.
    """
    canvas = _Canvas(rng, size)
    _add_digit(canvas, pool, label, _CROP_SIDE)
    return canvas.finish()
