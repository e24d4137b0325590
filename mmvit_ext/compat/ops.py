"""Box ops with the interface of ``mmcv._ext``, on top of torchvision and NumPy.

The parameters of each function have the names, order and meaning that mmcv's Python
wrappers (``mmcv.ops.nms``, ``mmcv.ops.roi_align``) use for the compiled function of the
same name. Boxes are (x1, y1, x2, y2) in pixels. ``offset`` is what is added to a box's
width and height: 0, or 1 where x2 and y2 name the last pixel inside the box.

Every op is computed in float32, or in float64 if one of its inputs is float64: kernels
for half precision are not there on all devices, and torchvision wants all inputs of one
type, which mixed precision does not give it.
"""

import numpy as np
import torch
import torchvision.ops
from torch import Tensor

from .mmcv_ext import MissingOpError

_AVERAGE = 1


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float, offset: int) -> Tensor:
    """Greedy non-maximum suppression by ``torchvision.ops.nms``.

    Args:
        boxes: Boxes in pixels, shape (N, 4).
        scores: Scores, shape (N,).
        iou_threshold: A box is dropped if its IoU with a kept one is greater than this.
        offset: Added to widths and heights, 0 or 1.

    Returns:
        Indices of the kept boxes by falling score, int64, shape (K,).
    """
    dtype = _compute_dtype(boxes, scores)
    corners = boxes.to(dtype)
    corners = corners + corners.new_tensor([0, 0, offset, offset])
    # torchvision's CPU kernel compares with a float64 threshold: a float32 IoU of 0.6 would be
    # greater than 0.6 there, while mmcv and the CUDA kernel compare in float32.
    threshold = torch.tensor(iou_threshold, dtype=dtype).item()
    return torchvision.ops.nms(corners, scores.to(dtype), threshold)


def softnms(
    boxes: Tensor,
    scores: Tensor,
    dets: Tensor,
    iou_threshold: float,
    sigma: float,
    min_score: float,
    method: int,
    offset: int,
) -> Tensor:
    """Soft-NMS (Bodla et al., "Soft-NMS: Improving Object Detection With One Line of Code").

    The box of the highest score left is kept and the scores of the others fall with their
    IoU with it, until none is left; a box is dropped once its score is below ``min_score``.
    The first box kept is not held against ``min_score``. Boxes of equal score come in the
    order that mmcv's in-place algorithm, which fills a dropped box's place with the last
    box, gives. The IoU of two boxes without area is 0 (compiled mmcv: not a number).

    Args:
        boxes: Boxes in pixels on the CPU, shape (N, 4).
        scores: Scores on the CPU, shape (N,).
        dets: Output on the CPU, shape (N, 5): the first K rows become the kept boxes with
            their lowered scores, in the order in which they were kept.
        iou_threshold: For methods 0 and 1, the IoU from which on a score falls.
        sigma: For method 2, width of the Gaussian, in squared IoU.
        min_score: Boxes with a lower score are dropped.
        method: How a score falls with the IoU u: 0 to zero, 1 by the factor 1 - u, 2 by the
            factor exp(-u * u / sigma).
        offset: Added to widths and heights, 0 or 1.

    Returns:
        Indices of the kept boxes, int64, shape (K,).
    """
    dtype = _compute_dtype(boxes, scores)
    rows = torch.cat([boxes, scores[:, None]], dim=1).detach().to(dtype).numpy()
    order = np.arange(len(rows))
    count = len(rows)
    kept = 0
    while kept < count:
        best = kept + int(np.argmax(rows[kept:count, 4]))
        rows[[kept, best]] = rows[[best, kept]]
        order[[kept, best]] = order[[best, kept]]
        rest = slice(kept + 1, count)
        overlap = _iou(rows[kept], rows[rest], offset)
        rows[rest, 4] *= _score_factor(overlap, method, iou_threshold, sigma)
        kept += 1
        places = kept + _fill_places(rows[rest, 4] < min_score)
        count = kept + len(places)
        rows[kept:count] = rows[places]
        order[kept:count] = order[places]
    dets[:count] = torch.from_numpy(rows[:count]).to(dets.dtype)
    return torch.from_numpy(order[:count])


def nms_match(dets: Tensor, iou_threshold: float) -> list[list[int]]:
    """Greedy non-maximum suppression that also tells which box each dropped box fell to.

    Args:
        dets: Boxes in pixels with scores on the CPU, shape (N, 5).
        iou_threshold: A box joins the group of a kept one from this IoU on.

    Returns:
        A list of indices for each kept box, by falling score: the kept box itself, then the
        boxes dropped for it.
    """
    rows = dets.detach().to(_compute_dtype(dets)).numpy()
    left = np.argsort(-rows[:, 4], kind='stable')
    groups = []
    while len(left):
        joins = _iou(rows[left[0]], rows[left], offset=0) >= iou_threshold
        # Also where its IoU with itself is 0, for want of area.
        joins[0] = True
        groups.append(left[joins].tolist())
        left = left[~joins]
    return groups


def roi_align_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    """RoI align by average (He et al., "Mask R-CNN"), with torchvision's kernel.

    Args:
        input: Feature map, shape (B, C, H, W).
        rois: Image index and box in pixels of the image, shape (K, 5).
        output: Is filled with the features, shape (K, C, ``aligned_height``,
            ``aligned_width``), in its own dtype.
        argmax_y: Used by max mode only.
        argmax_x: Used by max mode only.
        aligned_height: Rows of bins per box.
        aligned_width: Columns of bins per box.
        spatial_scale: Feature pixels per image pixel.
        sampling_ratio: Sampling points per bin along each axis; 0 for as many as a bin has
            feature pixels, rounded up.
        pool_mode: 1 for average, 0 for maximum.
        aligned: Whether the centre of a pixel lies half a pixel from its corner; otherwise it
            lies in the corner and boxes are at least one feature pixel wide and high.

    Raises:
        MissingOpError: ``pool_mode`` is maximum.
    """
    _require_average(pool_mode, 'roi_align_forward')
    dtype = _compute_dtype(input, rois)
    # The kernel itself, as torchvision.ops.roi_align takes a compiled Python detour when
    # deterministic algorithms are asked for; only the backward kernel is not deterministic.
    pooled = torch.ops.torchvision.roi_align(
        input.to(dtype),
        rois.to(dtype),
        spatial_scale,
        aligned_height,
        aligned_width,
        sampling_ratio,
        aligned,
    )
    output.copy_(pooled)


def roi_align_backward(
    grad_output: Tensor,
    rois: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    grad_input: Tensor,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    """Gradient of ``roi_align_forward`` with respect to its feature map.

    Args:
        grad_output: Gradient of the output, shape (K, C, ``aligned_height``,
            ``aligned_width``).
        rois: As in ``roi_align_forward``.
        argmax_y: Used by max mode only.
        argmax_x: Used by max mode only.
        grad_input: The gradient is added to it, shape (B, C, H, W), in its own dtype.
        aligned_height: As in ``roi_align_forward``.
        aligned_width: As in ``roi_align_forward``.
        spatial_scale: As in ``roi_align_forward``.
        sampling_ratio: As in ``roi_align_forward``.
        pool_mode: As in ``roi_align_forward``.
        aligned: As in ``roi_align_forward``.

    Raises:
        MissingOpError: ``pool_mode`` is maximum.
    """
    _require_average(pool_mode, 'roi_align_backward')
    dtype = _compute_dtype(grad_output, rois)
    grad = torch.ops.torchvision._roi_align_backward(
        grad_output.to(dtype),
        rois.to(dtype),
        spatial_scale,
        aligned_height,
        aligned_width,
        *grad_input.shape,
        sampling_ratio,
        aligned,
    )
    grad_input.add_(grad)


def _compute_dtype(*tensors: Tensor) -> torch.dtype:
    """The dtype to compute in: float32, or float64 if one of the inputs is."""
    is_double = any(tensor.dtype == torch.float64 for tensor in tensors)
    return torch.float64 if is_double else torch.float32


def _require_average(pool_mode: int, op: str) -> None:
    """Raise ``MissingOpError`` unless RoI align is asked to average."""
    if pool_mode != _AVERAGE:
        raise MissingOpError(f'{op} (max mode)')


def _iou(box: np.ndarray, others: np.ndarray, offset: int) -> np.ndarray:
    """IoU of one box, shape (>= 4,), with others, shape (N, >= 4); 0 where both lack area."""
    start = np.maximum(box[:2], others[:, :2])
    end = np.minimum(box[2:4], others[:, 2:4])
    inter = np.maximum(end - start + offset, 0).prod(axis=1)
    area = (box[2:4] - box[:2] + offset).prod()
    other_areas = (others[:, 2:4] - others[:, :2] + offset).prod(axis=1)
    union = area + other_areas - inter
    return np.divide(inter, union, out=np.zeros_like(inter), where=union != 0)


def _score_factor(
    overlap: np.ndarray, method: int, iou_threshold: float, sigma: float
) -> np.ndarray:
    """Factors on the scores of boxes, from their IoUs with the kept box, shape (N,)."""
    if method == 2:
        return np.exp(-(overlap * overlap) / sigma)
    lowered = 1 - overlap if method == 1 else np.zeros_like(overlap)
    return np.where(overlap >= iou_threshold, lowered, np.ones_like(overlap))


def _fill_places(dropped: np.ndarray) -> np.ndarray:
    """Which box goes where after each dropped one was replaced by the last one left.

    Args:
        dropped: Whether a box is dropped, shape (N,).

    Returns:
        Old places of the boxes that are left, in the order of their new places, shape (K,).
    """
    left = len(dropped) - int(np.count_nonzero(dropped))
    places = np.arange(left)
    places[dropped[:left]] = left + np.flatnonzero(~dropped[left:])[::-1]
    return places
