# Cascade Mask R-CNN on ReMViTv2-T, 12 epochs: windows of detectron2's MViTv2
_base_ = [
    '../_base_/models/cascade-mask-rcnn_4conv1f_fpn.py',
    '../_base_/datasets/coco_instance_ms480-800.py',
    '../_base_/schedules/adamw_1x_det_mvitv2.py',
    '../_base_/runtime_det.py',
]

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmvit_ext.ReMViTv2',
        arch='tiny',
        window_size=56,
        drop_path_rate=0.0,
    ),
)
train_dataloader = dict(batch_size=8)
