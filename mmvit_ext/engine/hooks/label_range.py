"""Stops a run at the first label that the model has no class for."""

from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper

from mmvit_ext.errors import UsageError
from mmvit_ext.registry import HOOKS

from ..class_counts import class_heads


@HOOKS.register_module()
class LabelRangeHook(Hook):
    """Looks at the labels of each batch while they are on the CPU.

    On CUDA a label out of range ends in an assertion of some kernel, without a line number and
    with an unusable device; on the CPU in an error about an index. This names the file, the value
    and the field instead. Looked at are ``gt_sem_seg`` (its ``ignore_index`` excepted),
    ``gt_instances.labels`` and ``gt_label`` of mmseg's, mmdet's and mmpretrain's data samples.
    Models without a head that :func:`mmvit_ext.engine.class_counts.class_heads` knows, and batches
    of another make, pass unseen. ``default_hooks.label_range=None`` turns the check off in our
    tools.
    """

    # before hooks that may change or move the batch
    priority = 'VERY_HIGH'

    def before_train(self, runner: Any) -> None:
        """Reads the number of classes from the built model.

        Args:
            runner: The runner.
        """
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model
        heads = [
            (head.num_classes, field, getattr(head, 'ignore_index', None))
            for field, head in class_heads(model)
        ]
        self._head = min(heads, key=lambda head: head[0]) if heads else None

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        """Checks a batch.

        Args:
            runner: The runner; not used.
            batch_idx: Number of the batch in its epoch; not used.
            data_batch: Dict with ``data_samples``, a list.

        Raises:
            UsageError: Names the file, the label, the number of classes and what to change.
        """
        samples = data_batch.get('data_samples') if isinstance(data_batch, dict) else None
        if self._head is None or not isinstance(samples, list | tuple):
            return
        number, field, ignored = self._head
        for sample in samples:
            source, labels = _labels(sample)
            label = None if labels is None else _outside(labels, number, ignored)
            if label is not None:
                path = getattr(sample, source, None) or getattr(sample, 'img_path', None)
                raise UsageError(
                    f'{source}={path}: label {label}, but {field}={number} allows 0 to '
                    f'{number - 1}{_except(ignored)}; set num_classes of all heads, or correct '
                    f'the labels (metainfo.classes, reduce_zero_label or the file)'
                )


def _labels(sample: Any) -> tuple[str, torch.Tensor | None]:
    """The labels of a sample, and the field that names their file where it has one."""
    if 'gt_sem_seg' in sample:
        return 'seg_map_path', sample.gt_sem_seg.data
    if 'gt_instances' in sample:
        return 'img_path', sample.gt_instances.get('labels')
    return 'img_path', sample.gt_label if 'gt_label' in sample else None


def _outside(labels: torch.Tensor, number: int, ignored: int | None) -> int | None:
    """A label that is neither in 0 to ``number - 1`` nor ignored."""
    if labels.numel() == 0:
        return None
    least, most = _ends(labels)
    # a second pass only where the first one may have met what is ignored
    if ignored is not None and ignored in (least, most):
        least, most = _ends(torch.where(labels == ignored, 0, labels))
    if least < 0:
        return least
    return most if most >= number else None


def _ends(labels: torch.Tensor) -> tuple[int, int]:
    least, most = labels.aminmax()
    return int(least), int(most)


def _except(ignored: int | None) -> str:
    return '' if ignored is None else f' (and {ignored}, which is ignored)'
