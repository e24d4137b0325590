# Mask R-CNN on ReMViTv2-T, 36 epochs: windows of detectron2's MViTv2
_base_ = [
    'mmdet::_base_/models/mask-rcnn_r50_fpn.py',
    '../_base_/datasets/coco_instance_ms480-800.py',
    '../_base_/schedules/adamw_3x_det_mvitv2.py',
    '../_base_/runtime_det.py',
]

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmvit_ext.ReMViTv2',
        arch='tiny',
        window_size=56,
        drop_path_rate=0.2,
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)
train_dataloader = dict(batch_size=8)
