"""A part of Fashion-MNIST in folders, against the bytes it was made from."""

import gzip

import cv2
import numpy as np
import pytest

from mmvit_ext.datasets import fashion_mnist
from mmvit_ext.datasets.fashion_mnist import find_fashion_mnist, write_fashion_mnist


@pytest.fixture
def source(tmp_path):
    """Five pictures a split in the IDX format: magic number and sizes, then bytes."""
    folder, rng = tmp_path / 'source', np.random.default_rng(0)
    folder.mkdir()
    for split in ('train', 't10k'):
        pictures = rng.integers(0, 256, (5, 28, 28), dtype=np.uint8)
        labels = np.array([3, 1, 3, 9, 0], dtype=np.uint8)
        head = np.array([2051, 5, 28, 28], dtype='>i4').tobytes()
        with gzip.open(folder / f'{split}-images-idx3-ubyte.gz', 'wb') as stream:
            stream.write(head + pictures.tobytes())
        with gzip.open(folder / f'{split}-labels-idx1-ubyte.gz', 'wb') as stream:
            stream.write(np.array([2049, 5], dtype='>i4').tobytes() + labels.tobytes())
        np.save(folder / f'{split}.npy', pictures)
    return folder


def test_pictures_and_classes_are_those_of_the_files(source, tmp_path):
    write_fashion_mnist(source, tmp_path / 'out', train=4, val=2)
    files = sorted(str(f.relative_to(tmp_path / 'out')) for f in (tmp_path / 'out').rglob('*.png'))
    train = ['train/1/00001.png', 'train/3/00000.png', 'train/3/00002.png', 'train/9/00003.png']
    assert files == [*train, 'val/1/00001.png', 'val/3/00000.png']
    picture = cv2.imread(str(tmp_path / 'out' / 'train/3/00002.png'), cv2.IMREAD_GRAYSCALE)
    wanted = np.zeros((32, 32), np.uint8)
    wanted[2:30, 2:30] = np.load(source / 'train.npy')[2]
    assert np.array_equal(picture, wanted)


def test_a_finished_folder_is_left_and_another_size_replaces_it(source, tmp_path):
    out = tmp_path / 'out'
    write_fashion_mnist(source, out, train=2, val=1)
    mark = out / 'train/3/00000.png'
    mark.write_bytes(b'touched')
    write_fashion_mnist(source, out, train=2, val=1)
    assert mark.read_bytes() == b'touched'
    write_fashion_mnist(source, out, train=1, val=1)
    assert len(list(out.rglob('*.png'))) == 2 and mark.read_bytes() != b'touched'


def test_without_the_package_and_apt_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(fashion_mnist, 'INSTALLED', tmp_path / 'usr/nowhere')
    monkeypatch.setattr(fashion_mnist.shutil, 'which', lambda _: None)
    assert find_fashion_mnist(tmp_path / 'scratch') is None


def test_other_files_are_not_touched(source, tmp_path):
    mine = tmp_path / 'out' / 'mine.txt'
    mine.parent.mkdir()
    mine.write_text('mine')
    with pytest.raises(FileExistsError, match='other files'):
        write_fashion_mnist(source, mine.parent, train=1, val=1)
    assert mine.read_text() == 'mine'
