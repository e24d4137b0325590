"""Image files of a data set: missing, broken, of another size."""

import numpy as np
import pytest
from PIL import Image

from mmvit_ext.engine.data_report.images import check_images, image_size

PIXELS = np.random.default_rng(0).integers(0, 256, (30, 50, 3), dtype=np.uint8)


def save(path):
    Image.fromarray(PIXELS).save(path)
    return str(path)


@pytest.mark.parametrize('suffix', ['jpg', 'png', 'bmp'])
def test_sizes_and_whole_files(tmp_path, suffix):
    path = save(tmp_path / f'a.{suffix}')
    for decode in (False, True):
        assert image_size(path, decode) == ((50, 30), None)


def test_bytes_behind_the_image_do_no_harm(tmp_path):
    path = tmp_path / 'a.jpg'
    save(path)
    path.write_bytes(path.read_bytes() + b'\0' * 99)
    assert image_size(str(path)) == ((50, 30), None)


def test_each_fault(tmp_path):
    cut, damaged, empty, text = (tmp_path / name for name in ('c.jpg', 'd.png', 'e.jpg', 't.jpg'))
    save(cut)
    cut.write_bytes(cut.read_bytes()[:900])
    save(damaged)
    content = bytearray(damaged.read_bytes())
    content[200:260] = bytes(60)
    damaged.write_bytes(content)
    empty.touch()
    text.write_text('no picture')
    assert image_size(str(cut)) == ((50, 30), 'cut off')
    assert image_size(str(empty)) == (None, 'empty')
    assert image_size(str(text)) == (None, 'unreadable: UnidentifiedImageError')
    # damage in the middle shows when all is decoded only
    assert image_size(str(damaged)) == ((50, 30), None)
    assert image_size(str(damaged), decode=True)[1]


def test_a_data_sets_images(tmp_path):
    good, wide = save(tmp_path / 'good.jpg'), save(tmp_path / 'wide.jpg')
    (tmp_path / 'bad.jpg').touch()
    infos = [
        {'img_path': good, 'width': 50, 'height': 30},
        {'img_path': good, 'width': 50, 'height': 30},
        {'img_path': wide, 'width': 30, 'height': 50},
        {'img_path': str(tmp_path / 'bad.jpg')},
        {'img_path': str(tmp_path / 'none.jpg')},
    ]
    result = check_images(infos, decode=False)
    assert result.listed == 4
    assert result.missing == [str(tmp_path / 'none.jpg')]
    assert result.broken == [f'{tmp_path}/bad.jpg (empty)']
    assert result.resized == [f'{wide} (50 x 30, not 30 x 50)']
