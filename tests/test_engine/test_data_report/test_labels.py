"""Counts of labels, and labels of no class."""

import numpy as np
import pytest
from mmseg.datasets.transforms import LoadAnnotations
from PIL import Image

from mmvit_ext.engine.data_report.labels import count_boxes, count_classes, count_pixels


def test_boxes_without_crowds():
    def box(label, crowd=0):
        return {'bbox_label': label, 'ignore_flag': crowd}

    infos = [{'instances': [box(0), box(0), box(2)]}, {'instances': [box(2, 1), box(0)]}]
    result = count_boxes(infos)
    assert (result.unit, result.amount, result.images) == ('boxes', {0: 3, 2: 1}, {0: 2, 2: 1})


def test_classes_one_or_several():
    infos = [{'gt_label': 0}, {'gt_label': [1, 2]}, {'gt_label': np.array([1])}]
    assert count_classes(infos, 3).images == {0: 1, 1: 2, 2: 1}
    assert count_classes(infos, 3).faults == []
    assert count_classes(infos, 0).faults == []
    wrong = [{'gt_label': 3, 'img_path': 'a.jpg'}, {'gt_label': -1, 'img_path': 'b.jpg'}]
    assert count_classes(wrong, 3).faults == [
        'a.jpg (label 3 with 3 classes)',
        'b.jpg (label -1 with 3 classes)',
    ]


@pytest.fixture
def maps(tmp_path):
    """Writes a label map and its image, and says what mmseg's data sets say about them."""

    def make(values, size=None, **fields):
        array = np.asarray(values, np.uint8)
        count = len(list(tmp_path.iterdir()))
        path, image = tmp_path / f'{count}.png', tmp_path / f'{count}.jpg'
        Image.fromarray(array).save(path)
        Image.new('RGB', size or array.shape[1::-1]).save(image)
        return {
            'img_path': str(image),
            'seg_map_path': str(path),
            'label_map': None,
            'reduce_zero_label': False,
            'seg_fields': [],
            **fields,
        }

    return make


VALUES = np.random.default_rng(0).choice([0, 1, 2, 3, 254, 255], (20, 30))


@pytest.mark.parametrize('reduce', [False, True])
@pytest.mark.parametrize('renamed', [None, {0: 1, 1: 255, 2: 0}])
def test_pixels_are_those_that_mmseg_loads(maps, reduce, renamed):
    info = maps(VALUES, reduce_zero_label=reduce, label_map=renamed)
    loaded = LoadAnnotations()(dict(info))['gt_seg_map']
    expected = dict(zip(*(v.tolist() for v in np.unique(loaded, return_counts=True))))
    expected.pop(255)
    assert count_pixels([info], 300).amount == expected


def test_values_out_of_range_are_named(maps):
    good, bad = maps([[0, 1, 255]]), maps([[0, 3, 7]])
    result = count_pixels([good, bad], 3)
    assert result.faults == [f'{bad["seg_map_path"]} (values 3, 7 with 3 classes)']
    assert result.images == {0: 2, 1: 1, 3: 1, 7: 1}
    # one is above the classes, and 255 is not ignored
    assert len(count_pixels([good, bad], 3, ignored=3).faults) == 2


def test_maps_that_are_no_maps(maps, tmp_path):
    colours = maps(np.zeros((4, 5, 3)))
    small = maps(np.zeros((4, 5)), size=(9, 8))
    gone = {**small, 'seg_map_path': str(tmp_path / 'gone.png')}
    faults = count_pixels([colours, small, gone], 3).faults
    assert '3 channels' in faults[0]
    assert '5 x 4, its image 9 x 8' in faults[1]
    assert 'gone.png (FileNotFoundError' in faults[2]
