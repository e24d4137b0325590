"""Broken files are named or skipped, in a pipeline of any package."""

import sys

import cv2
import mmcv
import numpy as np
import pytest
from mmengine.dataset import BaseDataset
from mmengine.registry import TRANSFORMS, DefaultScope
from torch.utils.data import DataLoader

from mmvit_ext.datasets.transforms import LoadImageFromFile
from mmvit_ext.datasets.transforms import load_image as module
from mmvit_ext.engine.cli import run_tool, train_parser
from mmvit_ext.errors import UsageError

PIXELS = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)


@pytest.fixture
def files(tmp_path):
    """One good picture, and one for each fault with words that must be said about it."""
    good = tmp_path / 'good.jpg'
    cv2.imwrite(str(good), PIXELS)
    whole = good.read_bytes()
    faults = {}
    for name, data, words in (
        ('empty', b'', 'is empty'),
        ('text', b'no picture', 'cannot be decoded'),
        ('cut', whole[: len(whole) // 2], 'is cut off'),
    ):
        path = tmp_path / f'{name}.jpg'
        path.write_bytes(data)
        faults[str(path)] = words
    faults[str(tmp_path / 'none.jpg')] = 'No such file'
    return str(good), faults


@pytest.fixture
def warnings(monkeypatch):
    """Lines that were logged."""
    lines = []
    monkeypatch.setattr(module, 'print_log', lambda line, *args, **kwargs: lines.append(line))
    return lines


@pytest.mark.parametrize(
    'settings',
    [{}, {'to_float32': True}, {'color_type': 'grayscale'}, {'imdecode_backend': 'pillow'}],
)
def test_good_files_load_as_mmcv_does(files, settings):
    good, _ = files
    ours = LoadImageFromFile(**settings)({'img_path': good, 'other': 1})
    theirs = mmcv.transforms.LoadImageFromFile(**settings)({'img_path': good, 'other': 1})
    assert ours.keys() == theirs.keys() and ours['img_shape'] == ours['ori_shape'] == (60, 80)
    assert ours['img'].dtype == theirs['img'].dtype
    np.testing.assert_array_equal(ours['img'], theirs['img'])


def test_each_fault_is_named(files):
    for path, words in files[1].items():
        with pytest.raises(UsageError, match=f'img_path={path}: .*{words}.*on_error=skip'):
            LoadImageFromFile()({'img_path': path})


@pytest.mark.parametrize('settings', [{'on_error': 'skip'}, {'ignore_empty': True}])
def test_skipping_warns_once_for_each_file(files, settings, warnings):
    load = LoadImageFromFile(**settings)
    for path in [*files[1], *files[1]]:
        assert load({'img_path': path}) is None
    assert [line.split(': ')[0] for line in warnings] == [f'img_path={p}' for p in files[1]]
    assert all(line.endswith('skipped') for line in warnings)


def test_a_missing_backend_is_no_fault_of_the_file(files, monkeypatch):
    def fail(*args, **kwargs):
        raise ImportError('not installed')

    monkeypatch.setattr(mmcv, 'imfrombytes', fail)
    with pytest.raises(ImportError):
        LoadImageFromFile(on_error='skip')({'img_path': files[0]})


def test_an_image_that_is_there_already_is_kept():
    results = {'img': PIXELS, 'img_shape': (60, 80)}
    assert LoadImageFromFile()(results) is results and results['img'] is PIXELS


def test_unknown_reaction_and_text(files):
    with pytest.raises(UsageError, match="on_error='ask': choose from stop, skip"):
        LoadImageFromFile(on_error='ask')
    assert "on_error='skip'" in repr(LoadImageFromFile(on_error='skip'))


class Listed(BaseDataset):
    """Pictures in a list."""

    def load_data_list(self):
        return [{'img_path': path} for path in self.metainfo['paths']]


def dataset(files, scope, **settings):
    good, faults = files
    loader = {'type': 'mmvit_ext.LoadImageFromFile', **settings}
    paths = [good, *faults]
    with DefaultScope.overwrite_default_scope(scope):
        pipeline = [TRANSFORMS.build(loader)]
    return Listed(metainfo={'paths': paths}, pipeline=pipeline, serialize_data=False)


@pytest.mark.parametrize('scope', ['mmdet', 'mmseg', 'mmpretrain'])
def test_a_data_set_draws_another_sample(files, scope, warnings):
    data = dataset(files, scope, on_error='skip')
    assert {data[i]['img_path'] for i in range(len(data))} == {files[0]}


def test_a_worker_stops_the_tool_with_one_line(files, monkeypatch, capsys):
    def load(args):
        for _ in DataLoader(dataset(files, 'mmdet'), num_workers=1, collate_fn=list):
            pass

    monkeypatch.setattr(sys, 'argv', ['train.py', 'c.py'])
    with pytest.raises(SystemExit) as stop:
        run_tool(load, train_parser())
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count('\n') == 1
    assert error.startswith(f'error: img_path={next(iter(files[1]))}: the file is empty')
