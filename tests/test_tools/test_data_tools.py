"""The tools for data as a user runs them, and faults of data that stop training."""

import json

import pytest

from mmvit_ext.engine.cli import train_parser
from mmvit_ext.engine.run import train
from mmvit_ext.errors import UsageError

DETECTOR = 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py'
SEGMENTOR = 'configs/demo/upernet_reswin-nano_digits.py'


@pytest.mark.tools
def test_check_data_answers_by_its_exit_status(tool, tmp_path):
    script, where = 'dataset_converters/check_data.py', ('--data-root', tmp_path / 'none')
    result = tool(script, DETECTOR, *where, check=False)
    assert result.returncode == 1 and 'is laid out like this' in result.stdout
    assert 'Traceback' not in result.stderr


@pytest.mark.tools
def test_browse_dataset_needs_no_display(digits, tool, tmp_path):
    tool(
        'analysis_tools/browse_dataset.py', SEGMENTOR, '--data-root', digits['ade'],
        '--out', tmp_path / 'sheet.jpg', '--number', 2,
    )  # fmt: skip
    assert (tmp_path / 'sheet.jpg').stat().st_size > 5000


def test_wrong_names_stop_training(digits, tmp_path):
    where = ['--data-root', str(digits['coco']), '--work-dir', str(tmp_path)]
    names = "train_dataloader.dataset.metainfo.classes=('cat',)"
    with pytest.raises(UsageError) as error:
        train(train_parser().parse_args([DETECTOR, *where, '--cfg-options', names]))
    file = digits['coco'] / 'annotations' / 'instances_train2017.json'
    count = len(json.loads(file.read_text())['images'])
    text = str(error.value)
    assert text.startswith("metainfo.classes: wanted 'cat', found 'digit_0', ")
    assert f'0 of {count} images remain; set metainfo.classes' in text


def test_too_few_classes_stop_before_the_run(digits, tmp_path):
    where = ['--data-root', str(digits['ade']), '--work-dir', str(tmp_path / 'w')]
    number = 'model.decode_head.num_classes=2'
    with pytest.raises(UsageError, match='model.decode_head.num_classes=2: .* has 11 classes'):
        train(train_parser().parse_args([SEGMENTOR, *where, '--cfg-options', number]))
    assert not (tmp_path / 'w').exists()
