# Cascade Mask R-CNN on ReSwin-nano: digits in scenes of 160 pixels, in COCO's folder layout.
# A small copy of the full model: fewer channels, proposals and RoI samples, no change of kind.
_base_ = [
    'mmdet::_base_/models/cascade-mask-rcnn_r50_fpn.py',
    '../_base_/datasets/coco_instance_ms480-800.py',
    '../_base_/schedules/adamw.py',
    '../_base_/runtime_det.py',
]

data_root = 'data/digits_coco/'
metainfo = dict(classes=tuple(f'digit_{i}' for i in range(10)))
width = 64


def box_head(*target_stds):
    return dict(
        type='Shared2FCBBoxHead',
        in_channels=width,
        fc_out_channels=256,
        roi_feat_size=7,
        num_classes=10,
        bbox_coder=dict(
            type='DeltaXYWHBBoxCoder', target_means=[0.0] * 4, target_stds=list(target_stds)
        ),
        reg_class_agnostic=True,
        loss_cls=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0),
        loss_bbox=dict(type='SmoothL1Loss', beta=1.0, loss_weight=1.0),
    )


def training_of_box_head(iou):
    return dict(
        assigner=dict(
            type='MaxIoUAssigner',
            pos_iou_thr=iou,
            neg_iou_thr=iou,
            min_pos_iou=iou,
            match_low_quality=False,
            ignore_iof_thr=-1,
        ),
        sampler=dict(
            type='RandomSampler',
            num=48,
            pos_fraction=0.25,
            neg_pos_ub=-1,
            add_gt_as_proposals=True,
        ),
        mask_size=28,
        pos_weight=-1,
        debug=False,
    )


model = dict(
    backbone=dict(_delete_=True, type='mmvit_ext.ReSwin', arch='nano', drop_path_rate=0.0),
    neck=dict(in_channels=[48, 96, 192, 384], out_channels=width),
    rpn_head=dict(in_channels=width, feat_channels=width, anchor_generator=dict(scales=[6])),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=width),
        bbox_head=[
            box_head(0.1, 0.1, 0.2, 0.2),
            box_head(0.05, 0.05, 0.1, 0.1),
            box_head(0.033, 0.033, 0.067, 0.067),
        ],
        mask_roi_extractor=dict(out_channels=width),
        mask_head=dict(num_convs=2, in_channels=width, conv_out_channels=width, num_classes=10),
    ),
    train_cfg=dict(
        rpn=dict(sampler=dict(num=64)),
        rpn_proposal=dict(nms_pre=300, max_per_img=100),
        rcnn=[training_of_box_head(iou) for iou in (0.5, 0.6, 0.7)],
    ),
    test_cfg=dict(rpn=dict(nms_pre=300, max_per_img=100), rcnn=dict(max_per_img=30)),
)

# Scenes have one size: nothing is resized, and nothing flipped, since digits have a side.
train_pipeline = [
    dict(type='mmvit_ext.LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='PackDetInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(160, 160), keep_ratio=True),
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
    ),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    dataset=dict(metainfo=metainfo, data_root=data_root, pipeline=train_pipeline),
)
val_dataloader = dict(
    num_workers=1,
    dataset=dict(metainfo=metainfo, data_root=data_root, pipeline=test_pipeline),
)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file=data_root + 'annotations/instances_val2017.json')
test_evaluator = val_evaluator

max_epochs = 7
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=max_epochs, val_interval=max_epochs)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=50),
    dict(type='CosineAnnealingLR', by_epoch=True, T_max=max_epochs, convert_to_iter_based=True),
]
optim_wrapper = dict(optimizer=dict(lr=8e-4), clip_grad=dict(max_norm=5.0))
auto_scale_lr = dict(enable=False, base_batch_size=4)
default_hooks = dict(logger=dict(interval=20))
