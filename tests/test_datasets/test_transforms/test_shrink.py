"""Shrinking: size and place on the canvas, and the resized pixels."""

import numpy as np
import pytest
from mmengine.registry import TRANSFORMS
from PIL import Image

from mmvit_ext.datasets.transforms import Shrink
from mmvit_ext.errors import UsageError


def picture(height, width, *channels, dtype=np.uint8):
    """Random pixels."""
    rng = np.random.default_rng(0)
    return rng.integers(1, 256, (height, width, *channels)).astype(dtype)


# size, share, then first row, rows, first column and columns that the image keeps, by hand
PLACES = [
    ((20, 40), 0.15, (1, 17, 3, 34)),
    ((7, 5), 0.6, (2, 3, 1, 2)),
    ((9, 9), 0.45, (2, 5, 2, 5)),
    ((10, 3), 0.3, (1, 7, 0, 2)),
    ((5, 5), 0.0, (0, 5, 0, 5)),
    ((2, 1), 0.9, (0, 1, 0, 1)),
]


@pytest.mark.parametrize('size, share, place', PLACES)
def test_sits_in_the_middle_of_a_black_canvas(size, share, place):
    top, rows, left, columns = place
    expected = np.zeros((*size, 3), np.uint8)
    expected[top : top + rows, left : left + columns] = 200
    shrunk = Shrink(share)({'img': np.full((*size, 3), 200, np.uint8)})['img']
    np.testing.assert_array_equal(shrunk, expected)


@pytest.mark.parametrize('interpolation', ['bicubic', 'bilinear', 'nearest'])
def test_pixels_are_pillows(interpolation):
    image = picture(20, 40, 3)
    method = Image.Resampling[interpolation.upper()]
    expected = np.asarray(Image.fromarray(image).resize((34, 17), method))
    shrunk = Shrink(0.15, interpolation=interpolation)({'img': image})['img']
    np.testing.assert_array_equal(shrunk[1:18, 3:37], expected)


@pytest.mark.parametrize('channels', [(), (1,), (2,), (4,)])
def test_floats_of_any_number_of_channels_are_averaged(channels):
    image = picture(8, 12, *channels, dtype=np.float32)
    expected = image.reshape(4, 2, 6, 2, *channels).mean(axis=(1, 3))
    results = {'img': image, 'img_shape': (8, 12)}
    shrunk = Shrink(0.5, interpolation='box')(results)['img']
    assert shrunk.dtype == np.float32 and shrunk.shape == image.shape
    np.testing.assert_allclose(shrunk[2:6, 3:9], expected, rtol=1e-6)
    assert results['img_shape'] == (8, 12)


def test_fine_stripes_become_grey():
    image = np.zeros((20, 20, 3), np.uint8)
    image[:, ::2] = 200
    inner = Shrink(0.6)({'img': image})['img'][6:14, 7:13].astype(int)
    assert abs(inner - 100).max() < 25


def test_canvas_is_filled_with_the_mean():
    shrunk = Shrink(0.5, fill=(103.53, 116.28, 123.675))({'img': picture(4, 4, 3)})['img']
    assert shrunk[0, 0].tolist() == shrunk[3, 3].tolist() == [104, 116, 124]


@pytest.mark.parametrize('share', [1, 1.5, -0.1, float('nan')])
def test_nothing_left_is_refused(share):
    with pytest.raises(UsageError, match=f'share={share}: .*give 0 <= share < 1'):
        Shrink(share)


def test_unknown_interpolation_is_refused_by_a_config_too():
    cfg = {'type': 'mmvit_ext.Shrink', 'share': 0.5}
    with pytest.raises(UsageError, match="interpolation='area': choose from nearest, "):
        TRANSFORMS.build({**cfg, 'interpolation': 'area'})
    assert repr(TRANSFORMS.build(cfg)) == "Shrink(share=0.5, fill=0, interpolation='bicubic')"
