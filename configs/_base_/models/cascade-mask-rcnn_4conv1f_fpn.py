# Cascade Mask R-CNN on ReSwin-T with the box heads that Swin's published figures have: four
# convolutions and one linear layer with SyncBN, GIoU loss on decoded boxes
_base_ = 'mmdet::_base_/models/cascade-mask-rcnn_r50_fpn.py'


def box_head(*target_stds):
    return dict(
        type='ConvFCBBoxHead',
        num_shared_convs=4,
        num_shared_fcs=1,
        in_channels=256,
        conv_out_channels=256,
        fc_out_channels=1024,
        roi_feat_size=7,
        num_classes=80,
        bbox_coder=dict(
            type='DeltaXYWHBBoxCoder', target_means=[0.0] * 4, target_stds=list(target_stds)
        ),
        reg_class_agnostic=False,
        reg_decoded_bbox=True,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
        loss_cls=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0),
        loss_bbox=dict(type='GIoULoss', loss_weight=10.0),
    )


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
    roi_head=dict(
        bbox_head=[
            box_head(0.1, 0.1, 0.2, 0.2),
            box_head(0.05, 0.05, 0.1, 0.1),
            box_head(0.033, 0.033, 0.067, 0.067),
        ]
    ),
)
