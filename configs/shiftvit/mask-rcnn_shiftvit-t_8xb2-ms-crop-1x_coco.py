# Mask R-CNN on Shift-T, 12 epochs: Swin's recipe, since the paper's is not printed
_base_ = [
    'mmdet::_base_/models/mask-rcnn_r50_fpn.py',
    '../_base_/datasets/coco_instance_ms-crop480-800.py',
    '../_base_/schedules/adamw_1x_det.py',
    '../_base_/runtime_det.py',
]

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmvit_ext.ShiftViT',
        arch='tiny',
        drop_path_rate=0.1,
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)
