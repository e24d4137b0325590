"""The empty canvas: what cannot fill it is refused."""

import numpy as np
import pytest
from PIL import Image

from mmvit_ext.datasets.transforms.canvas import blank_like
from mmvit_ext.errors import UsageError

IMAGE = np.ones((2, 3, 3), np.uint8)


def test_one_value_or_one_a_channel():
    assert blank_like(IMAGE, 7.6).tolist() == [[[8, 8, 8]] * 3] * 2
    assert blank_like(IMAGE[..., 0], 7).tolist() == [[7] * 3] * 2
    assert blank_like(IMAGE, [1, 2, 3]).tolist() == [[[1, 2, 3]] * 3] * 2
    assert blank_like(IMAGE.astype(np.float32), -0.5)[1, 2].tolist() == [-0.5] * 3


def test_wrong_number_of_values():
    with pytest.raises(UsageError, match='2 values for 3 channels'):
        blank_like(IMAGE, (1, 2))


@pytest.mark.parametrize('fill', [256, -1, (0, 0, 300)])
def test_values_out_of_the_range_of_bytes(fill):
    with pytest.raises(UsageError, match=r'fill=.* not in 0\.\.255'):
        blank_like(IMAGE, fill)


def test_other_images_than_arrays():
    with pytest.raises(UsageError, match='img=Image: not an array'):
        blank_like(Image.fromarray(IMAGE), 0)
