"""Faults of COCO files are said: wrong classes, impossible boxes, missing masks."""

import json

import cv2
import numpy as np
import pytest
from mmdet.datasets import CocoDataset as MMDetCocoDataset
from mmdet.utils import register_all_modules

from mmvit_ext.datasets import coco as module
from mmvit_ext.datasets.coco import CocoDataset
from mmvit_ext.datasets.coco_boxes import box_fault
from mmvit_ext.errors import UsageError

SIZE = {'width': 60, 'height': 40}
SQUARE = [[5, 5, 15, 5, 15, 15, 5, 15]]
LOADING = [
    {'type': 'mmvit_ext.LoadImageFromFile'},
    {'type': 'mmdet.LoadAnnotations', 'with_bbox': True, 'with_mask': True},
]

BOXES = [
    ([5, 5, 10, 10], None),
    ([-5, -5, 10, 10], None),
    ([55, 35, 99, 99], None),
    ([5, 5, 0, 10], 'of no width or height'),
    ([5, 5, 10, -1], 'of no width or height'),
    ([5, 5, float('nan'), 10], 'of no width or height'),
    ([5, 5, 0.5, 10], 'thinner than a pixel'),
    ([60, 5, 10, 10], 'outside the image'),
    ([5, -10, 10, 10], 'outside the image'),
    ([float('nan'), 5, 10, 10], 'outside the image'),
    ([5, 5, 10], 'without four numbers'),
    ([5, 5, '10', 10], 'without four numbers'),
    (None, 'without four numbers'),
]


@pytest.mark.parametrize('box, fault', BOXES)
def test_box_faults(box, fault):
    assert box_fault(box, 60, 40) == fault


@pytest.fixture
def lines(monkeypatch):
    """What was logged."""
    found = []
    monkeypatch.setattr(module, 'print_log', lambda line, *args, **kwargs: found.append(line))
    return found


def annotation(image=0, box=(5, 5, 10, 10), category=1, **fields):
    x, y, w, h = box
    area = w * h
    known = {'category_id': category, 'area': area, 'iscrowd': 0, 'segmentation': SQUARE}
    return {'image_id': image, 'bbox': list(box), **known, **fields}


@pytest.fixture
def build(tmp_path):
    """Writes annotations and reads them: three images, the classes thing and other."""

    def make(annotations, kind=CocoDataset, images=3, names=('thing', 'other'), **settings):
        content = {
            'images': [{'id': i, 'file_name': f'{i}.png', **SIZE} for i in range(images)],
            'annotations': [{'id': i + 1, **a} for i, a in enumerate(annotations)],
            'categories': [{'id': i + 1, 'name': name} for i, name in enumerate(names)],
        }
        file = tmp_path / 'a.json'
        file.write_text(json.dumps(content))
        settings.setdefault('metainfo', {'classes': ('thing', 'other')})
        return kind(ann_file=str(file), data_prefix={'img': str(tmp_path)}, **settings)

    return make


def test_impossible_boxes_are_skipped_and_counted(build, lines):
    data = build(
        [
            annotation(),
            annotation(box=(5, 5, 0, 30)),
            annotation(box=(5, 5, 10, 0)),
            annotation(1, (70, 5, 10, 10)),
            annotation(1, (1, 2, 3, 4)),
            annotation(1, (70, 5, 10, 10), category=7),
            annotation(2, (0, 0, 30, 40), iscrowd=1),
        ]
    )
    boxes = [[i['bbox'] for i in data.get_data_info(n)['instances']] for n in range(3)]
    assert boxes == [[[5, 5, 15, 15]], [[1, 2, 4, 6]], [[0, 0, 30, 40]]]
    assert [i['ignore_flag'] for i in data.get_data_info(2)['instances']] == [1]
    assert lines == [
        f'{data.ann_file}: skipped 3 boxes: 2 of no width or height, 1 outside the image; '
        '1 crowd region is ignored in training'
    ]


def test_a_file_without_faults_reads_as_mmdets_and_is_not_talked_about(build, lines):
    annotations = [annotation(i % 3, (i, i, 9, 8), 1 + i % 2) for i in range(9)]
    ours, theirs = build(annotations), build(annotations, MMDetCocoDataset)
    assert [ours.get_data_info(i) for i in range(3)] == [theirs.get_data_info(i) for i in range(3)]
    assert lines == []


@pytest.mark.parametrize('area', [0, None, -1, 'none'])
def test_no_area_counts_as_width_times_height(build, lines, area):
    entry = annotation(area=area)
    if area == 'none':
        del entry['area']
    data = build([entry, annotation()], test_mode=True)
    assert len(data.get_data_info(0)['instances']) == 2
    assert lines[0].endswith(': 1 box without area: width * height')
    assert "COCO's evaluation reads it" in lines[1]


def test_images_left_with_no_box_are_filtered(build, lines):
    entries = [annotation(0), annotation(1, (5, 5, 0, 30))]
    filters = (None, {'filter_empty_gt': False}, {'filter_empty_gt': True})
    counts = [len(build(entries, filter_cfg=cfg)) for cfg in filters]
    assert counts == [3, 3, 1]


def test_no_wanted_class_stops_before_training(build):
    with pytest.raises(UsageError) as error:
        build([annotation()], metainfo={'classes': ('cat', 'dog')})
    text = str(error.value)
    assert "wanted 'cat', 'dog', found 'thing', 'other' in" in text
    assert '0 of 3 images remain; set metainfo.classes' in text and '\n' not in text


def test_nothing_left_by_the_filter_stops_too(build):
    with pytest.raises(UsageError, match="0 of 3 images remain.*min_size.*'thing', 'other'"):
        build([annotation()], filter_cfg={'min_size': 41})
    assert len(build([annotation()], filter_cfg={'min_size': 41}, test_mode=True)) == 3


def test_some_missing_classes_are_named(build, lines):
    build([annotation()], metainfo={'classes': ('cat', 'thing')})
    assert len(lines) == 1
    assert lines[0].startswith("metainfo.classes: 'cat' missing in ")
    assert "so 'thing' are shown under wrong names; set metainfo.classes to 'thing'" in lines[0]


def test_another_order_is_warned_of(build, lines):
    # mmdet numbers classes in the order of the file
    data = build([annotation(category=1)], metainfo={'classes': ('other', 'thing')})
    assert data.get_data_info(0)['instances'][0]['bbox_label'] == 0
    assert (
        'another order than' in lines[0] and "set metainfo.classes to 'thing', 'other'" in lines[0]
    )


def test_one_string_is_no_list_of_names(build):
    with pytest.raises(UsageError, match=r"metainfo.classes='cat': .*metainfo.classes=\('cat',\)"):
        build([annotation()], metainfo={'classes': 'cat'})


def test_a_file_of_names_is_read(build, tmp_path, lines):
    (tmp_path / 'names.txt').write_text('thing\nother\n')
    data = build([annotation()], metainfo={'classes': str(tmp_path / 'names.txt')})
    assert data.metainfo['classes'] == ['thing', 'other']


@pytest.mark.parametrize(
    'content', ['{"images": [', '[]', '{"annotations": [{}]}', '{"images": [{"id": 0}]}']
)
def test_no_coco_file(tmp_path, content):
    (tmp_path / 'a.json').write_text(content)
    with pytest.raises(UsageError, match='a.json|metainfo.classes'):
        CocoDataset(ann_file=str(tmp_path / 'a.json'), data_prefix={'img': ''})


def test_ids_names_and_sizes_that_are_wrong(build):
    with pytest.raises(UsageError, match='1 annotations have the id of another'):
        build([annotation(id=5), annotation(id=5)])
    with pytest.raises(UsageError, match="several categories are named 'thing'"):
        build([annotation()], names=('thing', 'thing', 'other'))
    without = {'raw_img_info': {'id': 4, 'file_name': 'x.png'}, 'raw_ann_info': []}
    with pytest.raises(UsageError, match=r'image 4 \(x.png\) has no width or height'):
        build([annotation()]).parse_data_info(without)


@pytest.mark.parametrize('empty', [[], None])
def test_box_only_files(build, tmp_path, empty):
    entries = [annotation(), annotation(segmentation=empty)]
    data = build(entries)
    assert ['mask' in i for i in data.get_data_info(0)['instances']] == [True, False]
    with pytest.raises(UsageError, match='a.json: annotation 2 has no segmentation.*with_mask'):
        build(entries, pipeline=LOADING)


def test_run_lengths_in_a_list_are_masks_of_crowds(build, tmp_path, lines):
    register_all_modules(init_default_scope=False)
    cv2.imwrite(str(tmp_path / '0.png'), np.zeros((40, 60, 3), np.uint8))
    # column by column: the first ten columns of forty rows
    runs = {'size': [40, 60], 'counts': [0, 400, 2000]}
    crowd = annotation(box=(0, 0, 10, 40), iscrowd=1, segmentation=runs)
    sample = build([annotation(), crowd], pipeline=LOADING)[0]
    expected = np.zeros((40, 60))
    expected[:, :10] = 1
    np.testing.assert_array_equal(sample['gt_masks'].masks[1], expected)
    assert sample['gt_ignore_flags'].tolist() == [False, True]
