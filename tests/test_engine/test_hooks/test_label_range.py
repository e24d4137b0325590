"""Labels that a model has no class for stop the run, with the file and the field."""

import time
from types import SimpleNamespace

import pytest
import torch
from mmengine.structures import InstanceData, PixelData
from torch import nn

from mmvit_ext.engine.hooks.label_range import LabelRangeHook
from mmvit_ext.errors import UsageError


class Head(nn.Module):
    """A head of a few classes."""

    def __init__(self, num_classes, **fields):
        super().__init__()
        self.num_classes = num_classes
        for name, value in fields.items():
            setattr(self, name, value)


def hook_for(**heads):
    """The hook, after it has seen a model with these heads."""
    model = nn.Module()
    for name, head in heads.items():
        setattr(model, name, head)
    hook = LabelRangeHook()
    hook.before_train(SimpleNamespace(model=model))
    return hook


def look(hook, samples):
    hook.before_train_iter(None, 0, {'inputs': [], 'data_samples': samples})


def segmented(values):
    from mmseg.structures import SegDataSample

    sample = SegDataSample(metainfo={'img_path': 'a.jpg', 'seg_map_path': 'a.png'})
    sample.gt_sem_seg = PixelData(data=torch.tensor(values).reshape(1, 2, -1))
    return sample


def detected(labels):
    from mmdet.structures import DetDataSample

    sample = DetDataSample(metainfo={'img_path': 'a.jpg'})
    sample.gt_instances = InstanceData(labels=torch.tensor(labels, dtype=torch.int64))
    return sample


def classified(label):
    from mmpretrain.structures import DataSample

    return DataSample(metainfo={'img_path': 'a.jpg'}).set_gt_label(label)


def test_label_maps():
    hook = hook_for(decode_head=Head(3, ignore_index=255))
    look(hook, [segmented([0, 1, 2, 255]), segmented([0, 1, 255, 255])])
    for values, label in (([0, 1, 3, 2], 3), ([0, 255, 7, 2], 7), ([0, -1, 1, 255], -1)):
        with pytest.raises(UsageError) as error:
            look(hook, [segmented([0, 1, 2, 255]), segmented(values)])
        assert str(error.value).startswith(
            f'seg_map_path=a.png: label {label}, but model.decode_head.num_classes=3 allows 0 to 2 '
            '(and 255, which is ignored); set num_classes of all heads'
        )


def test_only_the_heads_own_value_is_ignored():
    with pytest.raises(UsageError, match='label 255'):
        look(hook_for(decode_head=Head(3, ignore_index=0)), [segmented([0, 1, 2, 255])])
    look(hook_for(decode_head=Head(3, ignore_index=-100)), [segmented([0, 1, 2, -100])])


def test_the_smallest_head_counts():
    heads = {'decode_head': Head(9, ignore_index=255), 'auxiliary_head': Head(3, ignore_index=255)}
    with pytest.raises(UsageError, match='model.auxiliary_head.num_classes=3'):
        look(hook_for(**heads), [segmented([0, 1, 2, 5])])


def test_boxes():
    roi_head = nn.Module()
    roi_head.bbox_head = nn.ModuleList([Head(4), Head(4)])
    roi_head.mask_head = Head(1, class_agnostic=True)
    hook = hook_for(roi_head=roi_head)
    look(hook, [detected([]), detected([0, 3])])
    with pytest.raises(UsageError) as error:
        look(hook, [detected([]), detected([0, 4])])
    assert str(error.value).startswith(
        'img_path=a.jpg: label 4, but model.roi_head.bbox_head[0].num_classes=4 allows 0 to 3; set'
    )


@pytest.mark.parametrize('label, wrong', [(9, None), ([0, 9], None), (10, 10), ([3, 12], 12)])
def test_classes_of_images(label, wrong):
    hook = hook_for(head=Head(10))
    if wrong is None:
        look(hook, [classified(label)])
    else:
        with pytest.raises(
            UsageError, match=f'a.jpg: label {wrong}, but model.head.num_classes=10'
        ):
            look(hook, [classified(label)])


def test_other_models_and_batches_pass():
    look(hook_for(), [classified(5)])
    hook = hook_for(head=Head(2))
    hook.before_train_iter(None, 0, [torch.ones(3)])
    hook.before_train_iter(None, 0, {'inputs': torch.ones(3)})
    look(hook, [Unlabelled()])


class Unlabelled:
    """A sample without any labels."""

    def __contains__(self, name):
        return False


def test_costs_little():
    hook = hook_for(decode_head=Head(150, ignore_index=255))
    samples = [segmented([0, 255] * 512 * 256) for _ in range(4)]
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        look(hook, samples)
        seconds.append(time.perf_counter() - start)
    # some 2 ms; a step of a segmentor on 4 x 512 x 512 takes hundreds
    assert min(seconds) < 0.02
