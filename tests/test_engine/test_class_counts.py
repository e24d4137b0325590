"""Numbers of classes of heads and data, from configs and built models."""

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from mmvit_ext.engine import class_counts
from mmvit_ext.engine.class_counts import check_classes, class_heads, dataset_classes
from mmvit_ext.errors import UsageError

DETECTOR = 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py'
SEGMENTOR = 'configs/demo/upernet_reswin-nano_digits.py'
CLASSIFIER = 'configs/demo/reswin-nano_digits-cls.py'
ROI = 'model.roi_head'
FIELDS = {
    DETECTOR: [f'{ROI}.bbox_head[{i}].num_classes' for i in range(3)]
    + [f'{ROI}.mask_head.num_classes'],
    SEGMENTOR: ['model.decode_head.num_classes', 'model.auxiliary_head.num_classes'],
    CLASSIFIER: ['model.head.num_classes'],
}


@pytest.fixture
def lines(monkeypatch):
    """What was logged."""
    found = []
    monkeypatch.setattr(class_counts, 'print_log', lambda line, *args, **kw: found.append(line))
    return found


@pytest.mark.parametrize('config', FIELDS)
def test_heads_of_a_config_and_of_its_model(config):
    cfg = Config.fromfile(config)
    number = 11 if config == SEGMENTOR else 10
    heads = {field: head.num_classes for field, head in class_heads(cfg.model)}
    assert heads == dict.fromkeys(FIELDS[config], number)
    with torch.device('meta'), DefaultScope.overwrite_default_scope(cfg.default_scope):
        model = MODELS.build(cfg.model)
    built = [head.num_classes for _, head in class_heads(model)]
    # the one mask head of the config stands for three
    assert set(built) == {number} and len(built) >= len(heads)


def test_mask_heads_that_know_no_classes_are_left_out():
    cfg = Config.fromfile(DETECTOR)
    cfg.merge_from_dict({'model.roi_head.mask_head.class_agnostic': True})
    assert [field for field, _ in class_heads(cfg.model)] == FIELDS[DETECTOR][:3]


def test_classes_of_data_sets():
    def names(**dataset):
        return dataset_classes(Config(dataset))

    with DefaultScope.overwrite_default_scope('mmseg'):
        assert len(names(type='ADE20KDataset')) == 150
        assert names(type='BaseSegDataset') is None
        assert names(type='BaseSegDataset', metainfo={'classes': ('a', 'b')}) == ('a', 'b')
        assert names(type='BaseSegDataset', metainfo={'classes': 'names.txt'}) is None
    with DefaultScope.overwrite_default_scope('mmdet'):
        assert len(names(type='mmvit_ext.CocoDataset')) == 80


@pytest.mark.parametrize(
    'config, part', [(SEGMENTOR, 'decode_head'), (SEGMENTOR, 'auxiliary_head')]
)
def test_more_classes_than_a_head_has_are_refused(config, part, lines):
    cfg = Config.fromfile(config)
    check_classes(cfg)
    assert lines == []
    cfg.model[part].num_classes = 2
    with pytest.raises(UsageError) as error:
        check_classes(cfg)
    assert str(error.value) == (
        f'model.{part}.num_classes=2: train_dataloader.dataset has 11 classes; set num_classes of '
        'all heads to 11, or train_dataloader.dataset.metainfo.classes to 2 names'
    )


def test_fewer_are_warned_of(lines):
    cfg = Config.fromfile(DETECTOR)
    cfg.merge_from_dict({'val_dataloader.dataset.metainfo.classes': ('thing',)})
    check_classes(cfg)
    assert len(lines) == 1
    assert lines[0].startswith(f'{FIELDS[DETECTOR][0]}=10: val_dataloader.dataset has 1 classes')


def test_data_without_names_are_not_judged(lines):
    check_classes(Config.fromfile(CLASSIFIER))
    assert lines == []
