"""The report on the data of a config: what it counts, and what it calls wrong."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config
from PIL import Image

from mmvit_ext.datasets import DigitSettings, make_digits
from mmvit_ext.engine.check_data import check
from mmvit_ext.engine.cli import check_data_parser
from mmvit_ext.engine.data_report.layouts import layout_of

CONFIG_FOLDER = Path('configs')
CONFIGS = {
    'coco': 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py',
    'ade': 'configs/demo/upernet_reswin-nano_digits.py',
    'imagenet': 'configs/demo/reswin-nano_digits-cls.py',
}


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """Whole data sets of each layout."""
    root = tmp_path_factory.mktemp('whole')
    for layout in CONFIGS:
        settings = DigitSettings(layout, train=10, val=10, height=64, width=64)
        make_digits(root / layout, settings)
    return root


@pytest.fixture
def run(made, tmp_path, capsys):
    """Checks a copy of a data set, after something was done to it."""

    def report(layout, spoil=None, *options):
        folder = tmp_path / layout
        shutil.copytree(made / layout, folder)
        if spoil:
            spoil(folder)
        arguments = [CONFIGS[layout], '--data-root', str(folder), *options]
        status = 0
        try:
            check(check_data_parser().parse_args(arguments))
        except SystemExit as stop:
            status = stop.code
        return status, capsys.readouterr().out

    return report


def row(text, name):
    """Numbers in a row of a table."""
    line = next(line for line in text.splitlines() if f' {name} ' in line and '│' in line)
    return [int(cell) for cell in line.strip('│ ').split('│')[1:]]


def test_whole_detection_data(run, made):
    status, text = run('coco')
    assert status == 0 and text.endswith('all there\n')
    assert 'val_dataloader.dataset, test_dataloader.dataset: mmvit_ext.CocoDataset' in text
    assert text.count('images: 10 listed, 10 found') == 2
    file = made / 'coco' / 'annotations' / 'instances_train2017.json'
    content = json.loads(file.read_text())
    number = {category['name']: category['id'] for category in content['categories']}
    boxes = [a for a in content['annotations'] if not a['iscrowd']]
    train = text.split('val_dataloader')[0]
    for name in ('digit_0', 'digit_7'):
        images = [a['image_id'] for a in boxes if a['category_id'] == number[name]]
        assert row(train, name) == [len(images), len(set(images))]


def spoil_detection(folder):
    file = folder / 'annotations' / 'instances_train2017.json'
    content = json.loads(file.read_text())
    content['annotations'][0]['bbox'][2] = 0
    content['annotations'][1]['bbox'][0] = 999
    content['images'][2]['width'] = 65
    file.write_text(json.dumps(content))
    pictures = sorted((folder / 'train2017').iterdir())
    pictures[0].unlink()
    pictures[1].write_bytes(pictures[1].read_bytes()[:500])


def test_spoiled_detection_data(run):
    status, text = run('coco', spoil_detection)
    assert status == 1 and text.endswith('3 faults\n')
    for words in (
        'images: 10 listed, 9 found',
        'skipped 2 boxes: 1 of no width or height, 1 outside the image',
        'wrong: 1 images missing: ',
        'wrong: 1 images unreadable or cut off: ',
        '(64 x 64, not 65 x 64)',
    ):
        assert words in text, words


def test_whole_and_spoiled_label_maps(run, made):
    def spoil(folder):
        Image.fromarray(np.full((64, 64), 11, np.uint8)).save(
            sorted((folder / 'annotations' / 'training').iterdir())[0]
        )

    status, text = run('ade', spoil)
    assert status == 1 and text.endswith('1 faults\n')
    assert 'wrong: 1 images with wrong labels: ' in text and '(values 11 with 11 classes)' in text
    maps = sorted((made / 'ade' / 'annotations' / 'validation').iterdir())
    pixels = [np.asarray(Image.open(file)) for file in maps]
    expected = [sum((p == 3).sum() for p in pixels), sum((p == 3).any() for p in pixels)]
    assert row(text.split('val_dataloader')[1], 'digit_2') == expected


def test_class_folders_that_differ(run):
    def spoil(folder):
        shutil.rmtree(folder / 'val' / 'digit_3')

    status, text = run('imagenet', spoil)
    assert status == 1
    assert 'train_dataloader.dataset and val_dataloader.dataset have other classes' in text
    assert 'val_dataloader.dataset has 9 classes, but model.head.num_classes=10' in text
    assert row(text.split('val_dataloader')[0], 'digit_3') == [1]


def test_damage_is_found_by_decoding(run):
    def spoil(folder):
        picture = next((folder / 'val' / 'digit_1').iterdir())
        png = picture.with_suffix('.png')
        Image.open(picture).save(png)
        content = bytearray(png.read_bytes())
        content[200:260] = bytes(60)
        png.write_bytes(content)

    assert run('imagenet', spoil, '--decode')[1].count('unreadable or cut off: ') == 1


def test_missing_data_come_with_their_layout(run):
    status, text = run('coco', lambda folder: shutil.rmtree(folder / 'val2017'))
    assert status == 1 and 'val_dataloader.dataset.data_prefix.img: ' in text
    assert 'mmvit_ext.CocoDataset is laid out like this' in text
    assert 'DIR/annotations/instances_val2017.json' in text
    assert 'train_dataloader.dataset: mmvit_ext.CocoDataset' in text and 'digit_0' in text


def test_data_that_training_would_fetch_are_not_fetched(tmp_path, capsys):
    options = [
        f'{part}_dataloader.dataset.data_root={tmp_path}' for part in ('train', 'val', 'test')
    ]
    config = next(iter(sorted(CONFIG_FOLDER.glob('**/*cifar10.py'))))
    with pytest.raises(SystemExit):
        check(check_data_parser().parse_args([str(config), '--cfg-options', *options]))
    text = capsys.readouterr().out
    assert 'cannot be read: RuntimeError: Cannot find CIFAR10' in text
    assert 'DIR/cifar-10-batches-py/data_batch_1' in text and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    'kind, scope, words',
    [
        ('mmvit_ext.CocoDataset', 'mmdet', 'instances_train2017.json'),
        ('ADE20KDataset', 'mmseg', 'annotations/training'),
        ('BaseSegDataset', 'mmseg', 'annotations/training'),
        ('ImageNet', 'mmpretrain', 'train/<class>'),
        ('CustomDataset', 'mmpretrain', 'train/<class>'),
        ('CIFAR100', 'mmpretrain', 'cifar-100-python'),
        ('Flowers102', 'mmpretrain', 'setid.mat'),
        ('OxfordIIITPet', 'mmpretrain', 'trainval.txt'),
    ],
)
def test_layouts(kind, scope, words):
    assert words in layout_of(Config({'type': kind}), scope)
