"""The three layouts on disk, and what the OpenMMLab loaders make of them."""

import hashlib
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmengine.registry import init_default_scope
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO

import mmvit_ext  # noqa: F401  has to come before mmdet
from mmvit_ext.datasets import COCO_CATEGORIES, DIGIT_CLASSES, DigitSettings, make_digits
from mmvit_ext.datasets.layouts import layout_files

COUNTS = {'train': 24, 'val': 12}
SHAPE = (96, 128)


def hashes(root: Path) -> dict[str, str]:
    """Digest of every file below a folder, by its relative path."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob('*')
        if path.is_file()
    }


def load_coco(root: Path, split: str) -> COCO:
    return COCO(str(root / f'annotations/instances_{split}2017.json'))


@pytest.mark.parametrize('split', COUNTS)
def test_coco_pictures_are_as_listed(coco_root, split):
    coco = load_coco(coco_root, split)
    assert len(coco.imgs) == COUNTS[split] == len(list((coco_root / f'{split}2017').iterdir()))
    for info in coco.imgs.values():
        image = cv2.imread(str(coco_root / f'{split}2017' / info['file_name']))
        assert image.shape == (info['height'], info['width'], 3) == (*SHAPE, 3)
    assert [row['name'] for row in coco.dataset['categories']] == list(DIGIT_CLASSES)


@pytest.mark.parametrize('split', COUNTS)
def test_coco_mask_box_and_area_agree(coco_root, split):
    coco = load_coco(coco_root, split)
    for image_id in coco.imgs:
        cover = np.zeros(SHAPE, int)
        for annotation in coco.imgToAnns[image_id]:
            mask = coco.annToMask(annotation)
            assert mask.sum() == annotation['area'] > 0
            box = coco_mask.toBbox(coco.annToRLE(annotation))
            assert box.tolist() == annotation['bbox']
            assert annotation['category_id'] in coco.cats
            cover += mask
        assert cover.max() <= 1


@pytest.mark.parametrize('split', COUNTS)
def test_coco_has_crowd_empty_polygon_and_run_length_cases(coco_root, split):
    coco = load_coco(coco_root, split)
    crowds = [row for row in coco.anns.values() if row['iscrowd']]
    assert crowds
    assert all(isinstance(row['segmentation']['counts'], list) for row in crowds)
    assert any(not coco.imgToAnns[image_id] for image_id in coco.imgs)
    kinds = {type(row['segmentation']) for row in coco.anns.values() if not row['iscrowd']}
    assert kinds == {list, dict}


def test_official_names_and_ids(coco_names_root):
    from mmdet.datasets import CocoDataset

    rows = json.loads((coco_names_root / 'annotations/instances_val2017.json').read_text())
    names = tuple(row['name'] for row in rows['categories'])
    assert names == CocoDataset.METAINFO['classes']
    gaps = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}
    assert [row['id'] for row in rows['categories']] == sorted(set(range(1, 91)) - gaps)
    assert {row['category_id'] for row in rows['annotations']} <= set(range(1, 11))
    assert len({group for _, _, group in COCO_CATEGORIES}) == 12


@pytest.mark.parametrize('split', ['training', 'validation'])
def test_ade_labels_match_the_pictures(ade_root, split):
    images = sorted((ade_root / 'images' / split).iterdir())
    maps = sorted((ade_root / 'annotations' / split).iterdir())
    assert [path.stem for path in images] == [path.stem for path in maps]
    seen = set()
    for image_path, map_path in zip(images, maps):
        labels = cv2.imread(str(map_path), cv2.IMREAD_UNCHANGED)
        assert labels.dtype == np.uint8
        assert labels.shape == cv2.imread(str(image_path)).shape[:2] == SHAPE
        seen |= set(np.unique(labels).tolist())
    assert seen == set(range(11))


def test_ade_and_coco_show_the_same_scenes(ade_root, coco_root):
    coco = load_coco(coco_root, 'val')
    for image_id in (1, 2):
        labels = cv2.imread(
            str(ade_root / f'annotations/validation/ADE_val_{image_id:08d}.png'), -1
        )
        expected = sum(coco.annToMask(row) * row['category_id'] for row in coco.imgToAnns[image_id])
        assert (labels == expected).all()


@pytest.mark.parametrize('split', COUNTS)
def test_imagenet_has_every_class_folder(imagenet_root, split):
    folders = sorted(path.name for path in (imagenet_root / split).iterdir())
    assert folders == sorted(DIGIT_CLASSES)
    assert len(list((imagenet_root / split).rglob('*.jpg'))) == COUNTS[split]


@pytest.mark.parametrize('layout', ['coco', 'ade', 'imagenet'])
def test_bytes_repeat_and_do_not_depend_on_the_count(tmp_path, layout, request):
    root = request.getfixturevalue(f'{layout}_root')
    first = hashes(root)
    settings = DigitSettings(layout, **COUNTS, height=SHAPE[0], width=SHAPE[1])
    assert set(first) == {*layout_files(settings), 'digits.json'}

    make_digits(tmp_path / 'again', settings)
    assert hashes(tmp_path / 'again') == first

    fewer = DigitSettings(layout, train=6, val=9, height=SHAPE[0], width=SHAPE[1])
    make_digits(tmp_path / 'fewer', fewer)
    for name, digest in hashes(tmp_path / 'fewer').items():
        if not name.endswith('.json'):
            assert digest == first[name]

    other = DigitSettings(layout, train=2, val=1, height=SHAPE[0], width=SHAPE[1], seed=1)
    make_digits(tmp_path / 'other', other)
    pictures = {name: d for name, d in hashes(tmp_path / 'other').items() if name.endswith('.jpg')}
    assert len(set(pictures.values()) - set(first.values())) == len(pictures) == 3


@pytest.mark.parametrize('official', [False, True])
@pytest.mark.parametrize('poly2mask', [False, True])
def test_mmdet_loads_the_coco_layout(coco_root, coco_names_root, official, poly2mask):
    from mmdet.datasets import CocoDataset

    init_default_scope('mmdet')
    root = coco_names_root if official else coco_root
    dataset = CocoDataset(
        data_root=str(root),
        ann_file='annotations/instances_train2017.json',
        data_prefix={'img': 'train2017/'},
        metainfo=None if official else {'classes': DIGIT_CLASSES},
        pipeline=[
            {'type': 'LoadImageFromFile'},
            {
                'type': 'LoadAnnotations',
                'with_bbox': True,
                'with_mask': True,
                'poly2mask': poly2mask,
            },
            {'type': 'PackDetInputs'},
        ],
    )
    assert len(dataset) == COUNTS['train']
    labels = set()
    for item in dataset:
        sample = item['data_samples']
        labels |= set(sample.gt_instances.labels.tolist())
        assert len(sample.gt_instances.masks) == len(sample.gt_instances.bboxes)
        outlined = sample.gt_instances.masks.get_bboxes('hbox').tensor
        assert torch.equal(outlined, sample.gt_instances.bboxes.tensor)
    assert labels == set(range(10))
    ignored = [len(item['data_samples'].ignored_instances) for item in dataset]
    assert any(ignored)


def test_mmdet_filter_leaves_out_the_empty_pictures(coco_root):
    from mmdet.datasets import CocoDataset

    dataset = CocoDataset(
        data_root=str(coco_root),
        ann_file='annotations/instances_train2017.json',
        data_prefix={'img': 'train2017/'},
        metainfo={'classes': DIGIT_CLASSES},
        filter_cfg={'filter_empty_gt': True, 'min_size': 32},
        pipeline=[],
    )
    assert len(dataset) == COUNTS['train'] - 1


@pytest.mark.parametrize('split,count', [('training', 24), ('validation', 12)])
def test_mmseg_loads_the_ade_layout(ade_root, split, count):
    from mmseg.datasets import BaseSegDataset

    init_default_scope('mmseg')
    dataset = BaseSegDataset(
        data_root=str(ade_root),
        data_prefix={'img_path': f'images/{split}', 'seg_map_path': f'annotations/{split}'},
        img_suffix='.jpg',
        seg_map_suffix='.png',
        reduce_zero_label=False,
        metainfo={'classes': ('background', *DIGIT_CLASSES)},
        pipeline=[
            {'type': 'LoadImageFromFile'},
            {'type': 'LoadAnnotations', 'reduce_zero_label': False},
            {'type': 'PackSegInputs'},
        ],
    )
    assert len(dataset) == count
    labels = dataset[0]['data_samples'].gt_sem_seg.data
    assert tuple(labels.shape) == (1, *SHAPE)
    assert 0 < labels.max() <= 10


@pytest.mark.parametrize('split', COUNTS)
@pytest.mark.parametrize('kind', ['ImageNet', 'CustomDataset'])
def test_mmpretrain_loads_the_imagenet_layout(imagenet_root, split, kind):
    import mmpretrain.datasets

    init_default_scope('mmpretrain')
    where = {'split': split} if kind == 'ImageNet' else {'data_prefix': split}
    dataset = getattr(mmpretrain.datasets, kind)(
        data_root=str(imagenet_root),
        metainfo={'classes': DIGIT_CLASSES},
        pipeline=[{'type': 'LoadImageFromFile'}, {'type': 'PackInputs'}],
        **where,
    )
    assert len(dataset) == COUNTS[split]
    assert set(dataset.get_gt_labels().tolist()) == set(range(10))
    for index in range(3):
        name = Path(dataset.get_data_info(index)['img_path']).parent.name
        assert DIGIT_CLASSES[dataset[index]['data_samples'].gt_label.item()] == name
