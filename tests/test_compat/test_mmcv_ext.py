"""Tests of the stand-in for mmcv's compiled ops against plain reference formulas."""

import copy
import functools
import importlib
import importlib.util
import logging
import math
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path

import mmcv
import numpy as np
import pytest
import torch
import torchvision
from mmengine.logging import MMLogger
from mmengine.utils.dl_utils import mmcv_full_available

from mmvit_ext.compat import MissingOpError, install_mmcv_stand_in, mmcv_ext, stand_in_active

REPOSITORY = Path(__file__).parents[2]
METHODS = {'naive': 0, 'linear': 1, 'gaussian': 2}


@pytest.fixture
def ext():
    """A stand-in module of its own, whether or not mmcv has compiled ops."""
    return mmcv_ext.new_stand_in()


@pytest.fixture
def wrappers(ext, monkeypatch):
    """mmcv.ops with its NMS and RoI align wrappers calling the stand-in."""
    for name in ('mmcv.ops.nms', 'mmcv.ops.roi_align'):
        monkeypatch.setattr(importlib.import_module(name), 'ext_module', ext)
    return importlib.import_module('mmcv.ops')


@pytest.fixture
def no_ext(monkeypatch):
    """Undo the installation for the length of a test, and what the test installs after it."""
    if 'mmcv._ext' not in sys.modules:
        monkeypatch.setitem(sys.modules, 'mmcv._ext', None)
    monkeypatch.delitem(sys.modules, 'mmcv._ext')
    monkeypatch.setattr(mmcv, '_ext', None, raising=False)


def random_boxes(count, seed=0):
    """Overlapping boxes on a grid of half pixels, with distinct scores, float32."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.randint(0, 40, (count, 2), generator=generator) / 2
    size = torch.randint(1, 30, (count, 2), generator=generator) / 2
    scores = (torch.randperm(count, generator=generator) + 1) / (count + 1)
    return torch.cat([start, start + size], dim=1), scores


def iou_reference(a, b, offset):
    width = max(min(a[2], b[2]) - max(a[0], b[0]) + offset, 0)
    height = max(min(a[3], b[3]) - max(a[1], b[1]) + offset, 0)
    area_a = (a[2] - a[0] + offset) * (a[3] - a[1] + offset)
    area_b = (b[2] - b[0] + offset) * (b[3] - b[1] + offset)
    return width * height / (area_a + area_b - width * height)


def nms_reference(boxes, scores, threshold, offset):
    boxes, threshold = boxes.float().numpy(), np.float32(threshold)
    kept = []
    for i in np.argsort(-scores.float().numpy(), kind='stable'):
        if all(iou_reference(boxes[k], boxes[i], offset) <= threshold for k in kept):
            kept.append(int(i))
    return kept


def softnms_reference(boxes, scores, threshold, sigma, min_score, method, offset):
    """In place, one box at a time; returns kept (index, score) pairs."""
    left = [[i, float(score), box.tolist()] for i, (box, score) in enumerate(zip(boxes, scores))]
    done = 0
    while done < len(left):
        best = max(range(done, len(left)), key=lambda i: left[i][1])
        left[done], left[best] = left[best], left[done]
        i = done + 1
        while i < len(left):
            overlap = iou_reference(left[done][2], left[i][2], offset)
            if method == 2:
                left[i][1] *= math.exp(-(overlap**2) / sigma)
            elif overlap >= threshold:
                left[i][1] *= 1 - overlap if method == 1 else 0
            if left[i][1] >= min_score:
                i += 1
            else:
                last = left.pop()
                if i < len(left):
                    left[i] = last
        done += 1
    return [(i, score) for i, score, _ in left]


def bilinear_reference(plane, y, x):
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    top = plane[y0, x0] * (1 - x + x0) + plane[y0, x1] * (x - x0)
    bottom = plane[y1, x0] * (1 - x + x0) + plane[y1, x1] * (x - x0)
    return top * (1 - y + y0) + bottom * (y - y0)


def bin_reference(plane, start, size, grid, row, column):
    """Mean over a grid of sampling points in bin (row, column); start, size, grid are (y, x)."""
    total = 0.0
    for iy in range(grid[0]):
        for ix in range(grid[1]):
            y = start[0] + (row + (iy + 0.5) / grid[0]) * size[0]
            x = start[1] + (column + (ix + 0.5) / grid[1]) * size[1]
            total += bilinear_reference(plane, y, x)
    return total / (grid[0] * grid[1])


def roi_align_reference(features, rois, bins, scale, sampling_ratio, aligned):
    features, rois = features.double().numpy(), rois.double().numpy()
    output = np.zeros((len(rois), features.shape[1], *bins))
    for k, (image, *box) in enumerate(rois):
        x1, y1, x2, y2 = (value * scale - 0.5 * aligned for value in box)
        extent = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
        size = (extent[0] / bins[0], extent[1] / bins[1])
        grid = [sampling_ratio or math.ceil(length) for length in size]
        for c, row, column in np.ndindex(output.shape[1:]):
            plane = features[int(image), c]
            output[k, c, row, column] = bin_reference(plane, (y1, x1), size, grid, row, column)
    return torch.from_numpy(output)


def roi_align_inputs(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(2, 3, 7, 9, generator=generator, dtype=torch.float64)
    # The last two boxes leave the feature map and are thinner than one feature pixel.
    rois = torch.tensor(
        [[0, 1.0, 2.0, 11.0, 9.0], [1, 3.3, 0.2, 8.1, 12.9], [1, -9.0, -7.0, 30.0, 20.0]]
        + [[0, 5.0, 5.0, 5.6, 9.0]],
        dtype=torch.float64,
    )
    return features.to(dtype), rois


# NMS


@pytest.mark.parametrize('offset', [0, 1])
@pytest.mark.parametrize('threshold', [0.1, 0.5, 0.7])
def test_nms_matches_greedy_reference(ext, offset, threshold):
    boxes, scores = random_boxes(60)
    kept = ext.nms(boxes, scores, iou_threshold=threshold, offset=offset)
    assert kept.dtype == torch.int64
    assert kept.tolist() == nms_reference(boxes, scores, threshold, offset)


def test_nms_offset_counts_the_last_pixel(ext):
    """IoU 0.5 between 1 x 2 and 1 x 4 pixels, but 1/3 between their corners' distances."""
    boxes = torch.tensor([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 3.0]])
    scores = torch.tensor([0.9, 0.8])
    assert ext.nms(boxes, scores, iou_threshold=0.4, offset=1).tolist() == [0]
    assert ext.nms(boxes, scores, iou_threshold=0.4, offset=0).tolist() == [0, 1]


def test_nms_keeps_boxes_exactly_at_the_threshold(ext):
    """60 of 100 square pixels are an IoU of 0.6, which in float32 is more than 0.6."""
    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 6.0]])
    scores = torch.tensor([0.9, 0.8])
    assert ext.nms(boxes, scores, iou_threshold=0.6, offset=0).tolist() == [0, 1]
    assert ext.nms(boxes, scores, iou_threshold=0.59, offset=0).tolist() == [0]


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize('score_dtype', ['same', torch.float32])
def test_nms_other_dtypes(ext, dtype, score_dtype):
    boxes, scores = random_boxes(30, seed=1)
    boxes = boxes.to(dtype)
    scores = scores.to(dtype if score_dtype == 'same' else score_dtype)
    kept = ext.nms(boxes, scores, iou_threshold=0.3, offset=0)
    assert kept.tolist() == nms_reference(boxes, scores, 0.3, 0)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float16])
def test_ops_on_no_boxes(ext, wrappers, dtype):
    boxes, scores = torch.zeros(0, 4, dtype=dtype), torch.zeros(0, dtype=dtype)
    kept = ext.nms(boxes, scores, iou_threshold=0.5, offset=0)
    assert kept.shape == (0,) and kept.dtype == torch.int64
    dets, kept = wrappers.soft_nms(boxes, scores)
    assert dets.shape == (0, 5) and kept.shape == (0,) and kept.dtype == torch.int64
    assert ext.nms_match(torch.zeros(0, 5, dtype=dtype), iou_threshold=0.5) == []


def test_nms_wrapper_limits_and_filters(wrappers):
    boxes, scores = random_boxes(40, seed=2)
    dets, kept = wrappers.nms(boxes.numpy(), scores.numpy(), 0.5, score_threshold=0.3, max_num=5)
    expected = [i for i in nms_reference(boxes, scores, 0.5, 0) if scores[i] > 0.3][:5]
    assert kept.tolist() == expected
    assert np.array_equal(dets[:, :4], boxes.numpy()[expected])


@pytest.mark.parametrize('split_thr', [10000, 1])
def test_batched_nms_is_class_aware(wrappers, split_thr):
    boxes, scores = random_boxes(60, seed=3)
    labels = torch.arange(60) % 3
    cfg = {'type': 'nms', 'iou_threshold': 0.4, 'split_thr': split_thr}
    dets, kept = wrappers.batched_nms(boxes, scores, labels, cfg)
    expected = []
    for label in range(3):
        members = (labels == label).nonzero()[:, 0]
        of_class = nms_reference(boxes[members], scores[members], 0.4, 0)
        expected += members[of_class].tolist()
    expected.sort(key=lambda i: -scores[i])
    assert kept.tolist() == expected
    assert torch.equal(dets, torch.cat([boxes, scores[:, None]], dim=1)[expected])


# Soft-NMS and NMS match


@pytest.mark.parametrize('offset', [0, 1])
@pytest.mark.parametrize('method', METHODS)
@pytest.mark.parametrize('min_score', [1e-3, 0.25])
def test_softnms_matches_reference(wrappers, method, offset, min_score):
    boxes, scores = random_boxes(50, seed=4)
    # Equal scores show whether the order of ties follows the reference.
    scores[10:20] = scores[10]
    dets, kept = wrappers.soft_nms(
        boxes, scores, 0.3, sigma=0.5, min_score=min_score, method=method, offset=offset
    )
    expected = softnms_reference(boxes, scores, 0.3, 0.5, min_score, METHODS[method], offset)
    assert kept.tolist() == [i for i, _ in expected]
    assert torch.equal(dets[:, :4], boxes[kept])
    assert torch.allclose(dets[:, 4], torch.tensor([score for _, score in expected]))


def test_softnms_fills_dets_in_place_and_leaves_its_inputs(ext):
    boxes, scores = random_boxes(20, seed=5)
    boxes_before, scores_before = boxes.clone(), scores.clone()
    dets = torch.full((20, 5), -1.0)
    kept = ext.softnms(
        boxes, scores, dets, iou_threshold=0.3, sigma=0.5, min_score=0.2, method=0, offset=0
    )
    assert 0 < len(kept) < 20
    assert torch.equal(dets[: len(kept), 4], scores[kept])
    assert (dets[len(kept) :] == -1).all()
    assert torch.equal(boxes, boxes_before) and torch.equal(scores, scores_before)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float64])
def test_softnms_other_dtypes(wrappers, dtype):
    boxes, scores = random_boxes(20, seed=6)
    boxes, scores = boxes.to(dtype), scores.to(dtype)
    dets, kept = wrappers.soft_nms(boxes, scores, method='gaussian')
    reference, expected = wrappers.soft_nms(boxes.float(), scores.float(), method='gaussian')
    assert kept.tolist() == expected.tolist()
    assert dets.dtype == dtype
    assert torch.allclose(dets.float(), reference, rtol=1e-2)


@pytest.mark.parametrize('method, expected', [('naive', 0.0), ('linear', 0.25)])
def test_softnms_lowers_scores_exactly_at_the_threshold(wrappers, method, expected):
    boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.0]])
    dets, _ = wrappers.soft_nms(boxes, torch.tensor([0.75, 0.5]), 0.5, min_score=0, method=method)
    assert dets[:, 4].tolist() == [0.75, expected]


@pytest.mark.parametrize('method', METHODS)
def test_softnms_boxes_without_area(wrappers, method):
    boxes, scores = torch.ones(3, 4), torch.tensor([0.5, 0.7, 0.6])
    dets, kept = wrappers.soft_nms(boxes, scores, method=method)
    assert kept.tolist() == [1, 2, 0]
    assert torch.equal(dets[:, 4], scores[kept])


def test_nms_match_groups_by_the_box_kept(wrappers):
    boxes, scores = random_boxes(40, seed=7)
    groups = wrappers.nms_match(torch.cat([boxes, scores[:, None]], dim=1), 0.5)
    kept = [int(group[0]) for group in groups]
    assert kept == nms_reference(boxes, scores, 0.5 - 1e-6, 0)
    assert sorted(torch.cat(groups).tolist()) == list(range(40))
    for i, j in ((int(group[0]), int(j)) for group in groups for j in group[1:]):
        first = next(k for k in kept if iou_reference(boxes[k], boxes[j], 0) >= 0.5)
        assert first == i and scores[j] < scores[i]


# RoI align


@pytest.mark.parametrize('aligned', [True, False])
@pytest.mark.parametrize('sampling_ratio', [0, 2])
@pytest.mark.parametrize('scale', [1.0, 0.5])
def test_roi_align_matches_reference(wrappers, aligned, sampling_ratio, scale):
    features, rois = roi_align_inputs()
    pooled = wrappers.roi_align(features, rois, (3, 2), scale, sampling_ratio, 'avg', aligned)
    expected = roi_align_reference(features, rois, (3, 2), scale, sampling_ratio, aligned)
    assert torch.allclose(pooled, expected)


@pytest.mark.parametrize('aligned', [True, False])
@pytest.mark.parametrize('sampling_ratio', [0, 2])
def test_roi_align_gradient(wrappers, aligned, sampling_ratio):
    features, rois = roi_align_inputs()
    features = features[:, :1].requires_grad_()
    args = (0.5, sampling_ratio)
    assert torch.autograd.gradcheck(
        lambda x: wrappers.roi_align(x, rois, 2, *args, 'avg', aligned), features
    )
    pooled = wrappers.roi_align(features, rois, 2, *args, 'avg', aligned)
    direct = torchvision.ops.roi_align(features, rois, 2, *args, aligned)
    weight = torch.arange(pooled.numel(), dtype=pooled.dtype).view_as(pooled)
    gradients = [torch.autograd.grad((y * weight).sum(), features)[0] for y in (pooled, direct)]
    assert torch.equal(pooled, direct) and torch.allclose(*gradients)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize('rois_dtype', ['same', torch.float32, torch.float64])
def test_roi_align_keeps_the_dtype_of_its_input(wrappers, dtype, rois_dtype):
    features, rois = roi_align_inputs(dtype)
    features.requires_grad_()
    rois = rois.to(dtype if rois_dtype == 'same' else rois_dtype)
    pooled = wrappers.roi_align(features, rois, 2, 0.5, 0, 'avg', True)
    pooled.sum().backward()
    exact = features.detach().double().requires_grad_()
    expected = wrappers.roi_align(exact, rois.double(), 2, 0.5, 0, 'avg', True)
    expected.sum().backward()
    tolerance = 4 * torch.finfo(dtype).eps
    assert pooled.dtype == features.grad.dtype == dtype
    assert torch.allclose(pooled.double(), expected, tolerance, tolerance)
    assert torch.allclose(features.grad.double(), exact.grad, tolerance, tolerance)


def test_roi_align_under_autocast(wrappers):
    features, rois = roi_align_inputs(torch.bfloat16)
    expected = wrappers.roi_align(features, rois.float(), 2, 0.5, 0, 'avg', True)
    with torch.autocast('cpu', torch.bfloat16):
        pooled = wrappers.roi_align(features, rois.float(), 2, 0.5, 0, 'avg', True)
    assert torch.equal(pooled, expected)


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_roi_align_on_no_boxes(wrappers, dtype):
    features = torch.randn(2, 3, 7, 9, dtype=dtype, requires_grad=True)
    pooled = wrappers.roi_align(features, torch.zeros(0, 5), (3, 2), 1.0, 0, 'avg', True)
    assert pooled.shape == (0, 3, 3, 2)
    pooled.sum().backward()
    assert torch.equal(features.grad, torch.zeros_like(features))


def test_roi_align_max_mode_is_missing(wrappers):
    features, rois = roi_align_inputs()
    with pytest.raises(MissingOpError, match=r'roi_align_forward \(max mode\)'):
        wrappers.roi_align(features, rois, 2, 1.0, 0, 'max', True)


# The module


def test_missing_op_says_how_to_get_it(ext):
    assert hasattr(ext, 'ms_deform_attn_forward')
    with pytest.raises(NotImplementedError) as caught:
        ext.ms_deform_attn_forward(torch.zeros(1), im2col_step=64)
    message = str(caught.value)
    assert caught.type is MissingOpError
    assert 'ms_deform_attn_forward' in message and 'onedl-mmcv' in message
    assert '\n' not in message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


@pytest.mark.parametrize('name', ['__path__', '__wrapped__', '_private'])
def test_underscore_names_are_no_ops(ext, name):
    assert not hasattr(ext, name)
    with pytest.raises(AttributeError, match=name):
        getattr(ext, name)


def test_compiler_versions_tell_of_the_stand_in(ext):
    for version in (ext.get_compiler_version(), ext.get_compiling_cuda_version()):
        assert 'without compiled ops' in version


def test_copy_and_pickle(ext):
    holder = torch.nn.Module()
    holder.ext, holder.served, holder.missing = ext, ext.nms, ext.psamask_forward
    for copied in (copy.deepcopy(holder), pickle.loads(pickle.dumps(holder))):
        assert copied.ext is importlib.import_module('mmcv._ext')
        assert repr(copied.served) == '<served stand-in for mmcv._ext.nms>'
        assert repr(copied.missing) == '<missing stand-in for mmcv._ext.psamask_forward>'
        boxes, scores = random_boxes(5)
        assert torch.equal(copied.served(boxes, scores, 0.5, 0), ext.nms(boxes, scores, 0.5, 0))


def test_one_log_line_per_process(ext, monkeypatch):
    announce_once = functools.cache(mmcv_ext.announce_once.__wrapped__)
    monkeypatch.setattr(mmcv_ext, 'announce_once', announce_once)
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = MMLogger.get_current_instance()
    logger.addHandler(handler)
    boxes, scores = random_boxes(5)
    try:
        ext.get_compiler_version()
        assert not records
        for _ in range(2):
            ext.nms(boxes, scores, iou_threshold=0.5, offset=0)
            mmcv_ext.new_stand_in().nms_match(torch.zeros(0, 5), iou_threshold=0.5)
    finally:
        logger.removeHandler(handler)
    (record,) = records
    assert record.levelno == logging.INFO
    for word in ('torchvision', 'no compiled ops', 'MMVIT_EXT_STAND_IN=0'):
        assert word in record.getMessage()
    assert '\n' not in record.getMessage()


# The installation


@pytest.mark.parametrize('blocked', [False, True])
def test_install_where_compiled_ops_are_absent(no_ext, monkeypatch, tmp_path, blocked):
    if blocked:
        monkeypatch.setitem(sys.modules, 'mmcv._ext', None)
    else:
        monkeypatch.setattr(mmcv.__spec__, 'submodule_search_locations', [str(tmp_path)])
    assert not stand_in_active()
    assert install_mmcv_stand_in() and stand_in_active()
    module = sys.modules['mmcv._ext']
    assert install_mmcv_stand_in() and sys.modules['mmcv._ext'] is module
    assert mmcv._ext is module
    assert importlib.import_module('mmcv._ext') is module
    spec = importlib.util.find_spec('mmcv._ext')
    assert spec.name == module.__name__ == 'mmcv._ext' and spec.loader is module.__loader__
    assert mmcv_full_available()


def test_compiled_module_already_imported_stays(no_ext, monkeypatch):
    compiled = types.ModuleType('mmcv._ext')
    monkeypatch.setitem(sys.modules, 'mmcv._ext', compiled)
    assert not install_mmcv_stand_in() and not stand_in_active()
    assert sys.modules['mmcv._ext'] is compiled


def test_compiled_module_not_yet_imported_stays(no_ext, monkeypatch, tmp_path):
    (tmp_path / '_ext.py').write_text('compiled = True\n')
    monkeypatch.setattr(mmcv.__spec__, 'submodule_search_locations', [str(tmp_path)])
    monkeypatch.setattr(mmcv, '__path__', [str(tmp_path)])
    assert not install_mmcv_stand_in() and 'mmcv._ext' not in sys.modules
    assert importlib.import_module('mmcv._ext').compiled
    assert not install_mmcv_stand_in()


def test_switched_off_by_the_environment(no_ext, monkeypatch):
    monkeypatch.setitem(sys.modules, 'mmcv._ext', None)
    monkeypatch.setenv('MMVIT_EXT_STAND_IN', '0')
    assert not install_mmcv_stand_in() and not stand_in_active()


def test_nothing_to_do_without_mmcv(no_ext, monkeypatch):
    monkeypatch.setitem(sys.modules, 'mmcv', None)
    assert not install_mmcv_stand_in() and not stand_in_active()


def test_import_of_the_model_packages():
    """In a process of its own, with a compiled mmcv._ext hidden if there is one."""
    code = (
        'import sys\n'
        "sys.modules['mmcv._ext'] = None\n"
        'import mmvit_ext\n'
        "assert 'torchvision' not in sys.modules\n"
        'import mmcv.ops, mmdet.models, mmseg.models, mmpretrain.models\n'
        'print(mmcv.ops.get_compiler_version())\n'
    )
    environment = {**os.environ, 'OMP_NUM_THREADS': '1', 'MMVIT_EXT_STAND_IN': '1'}
    done = subprocess.run(
        [sys.executable, '-c', code],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert 'without compiled ops' in done.stdout
