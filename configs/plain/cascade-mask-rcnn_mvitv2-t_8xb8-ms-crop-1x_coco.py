# Cascade Mask R-CNN on MViTv2-T with its own recipe, 12 epochs
_base_ = [
    '../_base_/models/cascade-mask-rcnn_4conv1f_fpn.py',
    '../_base_/datasets/coco_instance_ms-crop480-800.py',
    '../_base_/schedules/adamw_1x_det_mvitv2.py',
    '../_base_/runtime_det.py',
]

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmvit_ext.ReMViTv2',
        arch='tiny',
        window_size=56,
        alpha=1.0,
        alpha_mode='fixed',
        drop_path_rate=0.0,
    ),
)
train_dataloader = dict(batch_size=8)
