# Cascade Mask R-CNN on ReSwin-T, 12 epochs
_base_ = [
    '../_base_/models/cascade-mask-rcnn_4conv1f_fpn.py',
    '../_base_/datasets/coco_instance_ms480-800.py',
    '../_base_/schedules/adamw_1x_det.py',
    '../_base_/runtime_det.py',
]

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmvit_ext.ReSwin',
        arch='tiny',
        alpha=0.5,
        drop_path_rate=0.0,
    ),
)
