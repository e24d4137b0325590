"""Cut-off files are told from whole ones, whatever else is in them."""

from io import BytesIO

import cv2
import numpy as np
import pytest
from PIL import Image

from mmvit_ext.datasets.image_bytes import decoding_error, is_cut_off

PIXELS = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)


def encoded(kind, **options):
    """The file of a noisy picture."""
    stream = BytesIO()
    Image.fromarray(PIXELS).save(stream, kind, **options)
    return stream.getvalue()


def with_preview():
    """A JPEG whose header holds another whole JPEG, as cameras write it."""
    preview, data = encoded('JPEG', quality=20), encoded('JPEG')
    return data[:2] + b'\xff\xe1' + (len(preview) + 2).to_bytes(2, 'big') + preview + data[2:]


FILES = {
    'jpeg': encoded('JPEG'),
    'progressive': encoded('JPEG', progressive=True),
    'preview': with_preview(),
    'png': encoded('PNG'),
}


@pytest.mark.parametrize('name', FILES)
@pytest.mark.parametrize('share', [0.3, 0.6, 0.9, 0.99])
def test_any_cut_is_seen(name, share):
    data = FILES[name]
    assert not is_cut_off(data) and not is_cut_off(data + b'\0' * 500)
    assert is_cut_off(data[: int(len(data) * share)])


def test_opencv_fills_up_a_cut_without_an_error(tmp_path):
    file = tmp_path / 'cut.jpg'
    file.write_bytes(FILES['jpeg'][: len(FILES['jpeg']) // 2])
    image = cv2.imread(str(file))
    assert image.shape == PIXELS.shape and np.ptp(image[-20:]) == 0


def test_other_formats_are_not_judged():
    assert not is_cut_off(encoded('BMP')[:500]) and not is_cut_off(b'') and not is_cut_off(b'text')


def test_pillows_verdict():
    assert decoding_error(FILES['jpeg']) is None
    assert 'truncated' in decoding_error(FILES['jpeg'][:3000])
    assert 'cannot identify' in decoding_error(b'text')
