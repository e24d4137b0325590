"""Translation: where every pixel goes, what is bared, what is refused."""

import cv2
import numpy as np
import pytest
from mmengine.registry import TRANSFORMS

from mmvit_ext.datasets.transforms import Translate
from mmvit_ext.errors import UsageError


def picture(height, width, *channels, dtype=np.uint8):
    """Random pixels without zeros, so that bared ones are told apart."""
    rng = np.random.default_rng(0)
    return rng.integers(1, 256, (height, width, *channels)).astype(dtype)


# 0.3 and 0.5 of 5 are 1.5 and 2.5: halves go to the even number, 2
@pytest.mark.parametrize(
    'side, share, pixels',
    [(20, 0.15, 3), (7, 0.15, 1), (7, 0.6, 4), (5, 0.3, 2), (5, 0.5, 2), (5, -0.3, -2)]
    + [(7, -0.6, -4), (7, 0.0, 0), (4, 0.99, 4)],
)
@pytest.mark.parametrize('direction', ['horizontal', 'vertical'])
def test_every_pixel_moves_by_the_rounded_share(side, share, pixels, direction):
    size = (3, side) if direction == 'horizontal' else (side, 3)
    image = picture(*size, 3)
    dx, dy = (pixels, 0) if direction == 'horizontal' else (0, pixels)
    moved = Translate(share, direction)({'img': image})['img']
    for y in range(size[0]):
        for x in range(size[1]):
            inside = 0 <= y - dy < size[0] and 0 <= x - dx < size[1]
            expected = image[y - dy, x - dx] if inside else (0, 0, 0)
            assert tuple(moved[y, x]) == tuple(expected)


@pytest.mark.parametrize('share', [0.15, 0.3, 0.45, 0.6, -0.45])
def test_agrees_with_opencv(share):
    image = picture(31, 45, 3)
    shift = np.float32([[1, 0, 0], [0, 1, round(share * 31)]])
    expected = cv2.warpAffine(image, shift, (45, 31), flags=cv2.INTER_NEAREST)
    np.testing.assert_array_equal(Translate(share, 'vertical')({'img': image})['img'], expected)


@pytest.mark.parametrize('channels', [(), (1,), (3,)])
@pytest.mark.parametrize('dtype', [np.uint8, np.float32])
def test_shape_type_and_the_given_array_are_kept(channels, dtype):
    image = picture(6, 9, *channels, dtype=dtype)
    given = image.copy()
    results = Translate(0.3)({'img': image, 'img_shape': (6, 9), 'gt_label': 4})
    assert results['img'].shape == image.shape and results['img'].dtype == dtype
    assert results['img_shape'] == (6, 9) and results['gt_label'] == 4
    np.testing.assert_array_equal(image, given)


def test_channels_are_filled_with_the_mean():
    mean = (103.53, 116.28, 123.675)
    as_bytes = Translate(0.5, fill=mean)({'img': picture(2, 4, 3)})['img']
    assert as_bytes[:, :2].reshape(-1, 3).tolist() == [[104, 116, 124]] * 4
    as_floats = Translate(0.5, fill=mean)({'img': picture(2, 4, 3, dtype=np.float32)})['img']
    np.testing.assert_allclose(as_floats[1, 1], mean, rtol=1e-6)


@pytest.mark.parametrize('share', [1, -1, 1.5, float('nan')])
def test_nothing_left_is_refused(share):
    with pytest.raises(UsageError, match=f'share={share}: .*give -1 < share < 1'):
        Translate(share)


def test_unknown_direction_is_refused_by_a_config_too():
    cfg = {'type': 'mmvit_ext.Translate', 'share': 0.5, 'direction': 'left'}
    with pytest.raises(UsageError, match="direction='left': choose from horizontal, vertical"):
        TRANSFORMS.build(cfg)
    built = TRANSFORMS.build({**cfg, 'direction': 'vertical'})
    assert repr(built) == "Translate(share=0.5, direction='vertical', fill=0)"
