"""The sheet of samples: pixels, places, and the same ones for the same seed."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config

from mmvit_ext.datasets import DigitSettings, make_digits
from mmvit_ext.engine.browse import CELL, GAP, browse, labels_keep_size, sheet, to_picture
from mmvit_ext.engine.cli import browse_parser
from mmvit_ext.errors import UsageError

CONFIGS = {
    'coco': 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py',
    'ade': 'configs/demo/upernet_reswin-nano_digits.py',
    'imagenet': 'configs/demo/reswin-nano_digits-cls.py',
}


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """A data set of each layout."""
    root = tmp_path_factory.mktemp('digits')
    for layout in CONFIGS:
        make_digits(root / layout, DigitSettings(layout, train=6, val=3, height=64, width=64))
    return root


def run(made, layout, out, *options, config=None):
    arguments = [
        str(config or CONFIGS[layout]),
        '--data-root',
        str(made / layout),
        '--out',
        str(out),
        *options,
    ]
    browse(browse_parser().parse_args(arguments))
    return cv2.imread(str(out))


def test_places_on_the_sheet():
    grey = [np.full((20, 40, 3), value, np.uint8) for value in (10, 20, 30)]
    drawn = sheet(grey)
    step = CELL + GAP
    assert drawn.shape == (2 * step + GAP, 2 * step + GAP, 3)
    for value, (row, column) in zip((10, 20, 30), ((0, 0), (0, 1), (1, 0))):
        top, left = GAP + row * step, GAP + column * step
        # twice as wide as high
        assert (drawn[top : top + CELL // 2, left : left + CELL] == value).all()
        assert (drawn[top + CELL // 2 : top + CELL, left : left + CELL] == 255).all()


@pytest.mark.parametrize(
    'fields, swapped',
    [
        ({'model': {'data_preprocessor': {'bgr_to_rgb': True}}}, True),
        ({'data_preprocessor': {'to_rgb': True}}, True),
        ({'model': {}, 'data_preprocessor': {'to_rgb': False}}, False),
    ],
)
def test_colours(fields, swapped):
    inputs = torch.tensor([10.0, 20.0, 300.0]).reshape(3, 1, 1)
    expected = [10, 20, 255][:: -1 if swapped else 1]
    assert to_picture(inputs, Config(fields))[0, 0].tolist() == expected
    assert to_picture(inputs[:1], Config(fields))[0, 0].tolist() == [10, 10, 10]


LABELS = {
    'coco': '[dict(type="LoadImageFromFile"), dict(type="Resize", scale=(160, 200)), '
    'dict(type="LoadAnnotations", with_bbox=True, with_mask=True), dict(type="PackDetInputs")]',
    'ade': None,
    'imagenet': None,
}
FOLDERS = {'coco': 'val2017', 'ade': 'images/validation', 'imagenet': 'val'}


def changed(tmp_path, layout, part, pipeline):
    """A config like the demo's with another pipeline."""
    base = Path(CONFIGS[layout]).absolute()
    config = tmp_path / 'config.py'
    config.write_text(
        f"_base_ = ['{base}']\n{part}_dataloader = dict(dataset=dict(pipeline={pipeline}))\n"
    )
    return config


@pytest.mark.parametrize('layout', CONFIGS)
def test_labels_are_drawn_where_they_belong(layout, made, tmp_path, capsys):
    config = LABELS[layout] and changed(tmp_path, layout, 'val', LABELS[layout])
    drawn = run(made, layout, tmp_path / 'a.png', '--number', '3', '--split', 'val', config=config)
    assert '3 of 3 samples of val_dataloader (0, 1, 2) in' in capsys.readouterr().out
    step = CELL + GAP
    assert drawn.shape == (2 * step + GAP, 2 * step + GAP, 3)
    # all are of 64 pixels, whatever the pipeline makes of them
    pictures = sorted((made / layout / FOLDERS[layout]).glob('**/*.jpg'))
    plain = cv2.resize(cv2.imread(str(pictures[0])), (CELL, CELL))
    cell = drawn[GAP : GAP + CELL, GAP : GAP + CELL].astype(int)
    changed_share = (abs(cell - plain).max(axis=2) > 40).mean()
    # boxes, masks and text cover a part; a label map tints everything
    assert changed_share > 0.9 if layout == 'ade' else 0.01 < changed_share < 0.9


def test_pipelines_that_load_labels_last():
    cfg = Config.fromfile('configs/cascade_rcnn_reswin_t_coco.py')
    assert labels_keep_size(cfg, 'val_dataloader')
    assert not labels_keep_size(cfg, 'train_dataloader')
    assert not labels_keep_size(Config.fromfile(CONFIGS['imagenet']), 'val_dataloader')


def test_the_seed_decides(made, tmp_path):
    pipeline = (
        '[dict(type="LoadImageFromFile"), dict(type="RandomResizedCrop", scale=32), '
        'dict(type="PackInputs")]'
    )
    config = changed(tmp_path, 'imagenet', 'train', pipeline)
    sheets = [
        run(made, 'imagenet', tmp_path / f'{i}.png', '--seed', seed, config=config)
        for i, seed in enumerate(['1', '1', '2'])
    ]
    np.testing.assert_array_equal(sheets[0], sheets[1])
    assert (sheets[0] != sheets[2]).any()


@pytest.mark.parametrize(
    'options, message',
    [
        (['--number', '0'], '--number=0'),
        (['--out', 'a.unknown'], '--out=a.unknown: cannot be written'),
        (['--split', 'test', '--cfg-options', 'test_dataloader=None'], '--split=test: the config'),
    ],
)
def test_wrong_arguments(options, message, made):
    arguments = [CONFIGS['imagenet'], '--data-root', str(made / 'imagenet'), *options]
    with pytest.raises(UsageError, match=message):
        browse(browse_parser().parse_args(arguments))
