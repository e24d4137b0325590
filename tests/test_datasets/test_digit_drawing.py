"""Digits, scenes and the mask encodings, without files."""

import subprocess
import sys

import numpy as np
import pytest
from pycocotools import mask as coco_mask

import mmvit_ext.datasets as datasets
from mmvit_ext.datasets import digits, load_pool, make_crop, make_scene, render_digit
from mmvit_ext.datasets.layouts import mask_to_polygons, mask_to_rle


def decode(segmentation, shape):
    """Rasterise a segmentation the way COCO does, to a bool mask of ``shape``."""
    encoded = coco_mask.frPyObjects(segmentation, *shape)
    if isinstance(encoded, list):
        encoded = coco_mask.merge(encoded)
    return coco_mask.decode(encoded).astype(bool)


def test_splits_share_no_digit_and_leave_none_out():
    train, val = load_pool('train'), load_pool('val')
    assert not set(train.indices) & set(val.indices)
    assert len(set(train.indices) | set(val.indices)) == 1797
    for pool in (train, val):
        counts = np.bincount(pool.labels, minlength=10)
        assert counts.min() > 0.9 * counts.max()


def test_scene_draws_from_its_pool_only(monkeypatch):
    pool = load_pool('val')
    known = {picture.tobytes() for picture in pool.pictures}
    drawn = []

    def spy(picture, *args):
        drawn.append(picture.tobytes())
        return render_digit(picture, *args)

    monkeypatch.setattr('mmvit_ext.datasets.scenes.render_digit', spy)
    for kind in ('digits', 'crowd'):
        make_scene(pool, np.random.default_rng(0), (96, 96), kind)
    assert len(drawn) > 10
    assert set(drawn) <= known


def test_unknown_split_is_refused():
    with pytest.raises(ValueError, match="split='test'.*train, val"):
        load_pool('test')


@pytest.mark.parametrize('long_side', [8, 24, 64])
def test_rendered_ink_has_the_asked_size(long_side):
    for picture in load_pool('train').pictures[::40]:
        ink = render_digit(picture, long_side, angle=10, stretch=1.1) > 0.5
        rows, cols = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
        assert abs(max(np.ptp(rows), np.ptp(cols)) + 1 - long_side) <= 2


@pytest.mark.parametrize('size', [(32, 32), (96, 160), (224, 160)])
@pytest.mark.parametrize('kind', ['digits', 'crowd', 'empty'])
def test_objects_are_inside_apart_and_counted(size, kind):
    for seed in range(15):
        scene = make_scene(load_pool('train'), np.random.default_rng(seed), size, kind)
        assert scene.image.shape == (*size, 3)
        assert scene.image.dtype == np.uint8
        cover = sum((item.mask.astype(int) for item in scene.instances), np.zeros(size, int))
        assert cover.max(initial=0) <= 1
        border = np.ones(size, bool)
        border[1:-1, 1:-1] = False
        assert not cover[border].any()
        assert [item.crowd for item in scene.instances].count(True) == (kind == 'crowd')
        if kind == 'empty':
            assert not scene.instances
        else:
            assert 1 <= len(scene.instances) <= 6


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match='busy'):
        make_scene(load_pool('train'), np.random.default_rng(0), (64, 64), 'busy')


def test_digits_stand_out_from_the_background():
    for seed in range(20):
        scene = make_scene(load_pool('train'), np.random.default_rng(seed), (160, 160))
        grey = scene.image @ np.array([0.114, 0.587, 0.299])
        ink = np.any([item.mask for item in scene.instances], axis=0)
        for item in scene.instances:
            x, y, width, height = item.bbox
            window = slice(y, y + height), slice(x, x + width)
            around = grey[window][~ink[window]]
            if len(around) > 20:
                assert abs(np.median(grey[item.mask]) - np.median(around)) > 45


@pytest.mark.parametrize('label', range(10))
def test_crop_holds_one_large_digit(label):
    scene = make_crop(load_pool('val'), np.random.default_rng(label), (64, 96), label)
    (digit,) = scene.instances
    assert digit.label == label
    assert max(digit.bbox[2:]) >= 0.4 * 64


def test_polygons_and_run_lengths_give_the_mask_back():
    rng = np.random.default_rng(0)
    for share in np.linspace(0.05, 0.95, 60):
        mask = rng.random((14, 11)) < share
        assert (decode(mask_to_rle(mask), mask.shape) == mask).all()
        assert (decode(mask_to_polygons(mask), mask.shape) == mask).all()


@pytest.mark.parametrize('mask', [np.ones((5, 7), bool), np.eye(4, dtype=bool)])
def test_masks_that_start_with_the_first_pixel(mask):
    assert (decode(mask_to_rle(mask), mask.shape) == mask).all()
    assert (decode(mask_to_polygons(mask), mask.shape) == mask).all()


def test_a_mask_with_a_hole_is_cut_in_parts_without_one():
    ring = np.ones((5, 5), bool)
    ring[2, 2] = False
    polygons = mask_to_polygons(ring)
    assert len(polygons) == 2
    assert sum(decode([polygon], ring.shape).sum() for polygon in polygons) == 24


def test_missing_scikit_learn_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, 'sklearn.datasets', None)
    with pytest.raises(ImportError, match=r'scikit-learn.*pip install "mmvit_ext\[demo\]"'):
        digits._load_source()


def test_every_exported_name_exists():
    for name in datasets.__all__:
        assert getattr(datasets, name) is not None
        assert name in dir(datasets)
    with pytest.raises(AttributeError, match='no_such_name'):
        _ = datasets.no_such_name


def test_importing_the_package_does_not_load_scikit_learn():
    code = 'import sys, mmvit_ext.datasets; sys.exit("sklearn" in sys.modules)'
    assert subprocess.run([sys.executable, '-c', code]).returncode == 0
