# Mask R-CNN on ReSwin-T (arXiv 2402.11301): 36 epochs, batch 16, AdamW 1e-4
_base_ = [
    'mmdet::_base_/models/mask-rcnn_r50_fpn.py',
    '../_base_/datasets/coco_instance_ms480-800.py',
    '../_base_/schedules/adamw_3x_det.py',
    '../_base_/runtime_det.py',
]

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmvit_ext.ReSwin',
        arch='tiny',
        alpha=0.5,
        drop_path_rate=0.2,
        # ImageNet weights: the authors link a page to fetch them from by hand; point to yours with
        # --cfg-options model.backbone.init_cfg.type=Pretrained model.backbone.init_cfg.checkpoint=X
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)
