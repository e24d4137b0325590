# Cascade Mask R-CNN on ReSwin-T (arXiv 2402.11301): 36 epochs, batch 16, AdamW 1e-4
_base_ = [
    '../_base_/models/cascade-mask-rcnn_4conv1f_fpn.py',
    '../_base_/datasets/coco_instance_ms480-800.py',
    '../_base_/schedules/adamw_3x_det.py',
    '../_base_/runtime_det.py',
]
