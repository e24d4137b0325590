# COCO 2017 as DETR, Swin and MViTv2 train on it: a shorter side of 480 to 800, half of the images
# cut to 384 to 600 pixels before that
_base_ = './coco_instance_ms480-800.py'

resize = dict(
    type='RandomChoiceResize',
    scales=[(side, 1333) for side in range(480, 801, 32)],
    keep_ratio=True,
)
train_pipeline = [
    dict(type='mmvit_ext.LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='RandomFlip', prob=0.5),
    dict(
        type='RandomChoice',
        transforms=[
            [resize],
            [
                dict(
                    type='RandomChoiceResize',
                    scales=[(side, 1333) for side in (400, 500, 600)],
                    keep_ratio=True,
                ),
                dict(
                    type='RandomCrop',
                    crop_type='absolute_range',
                    crop_size=(384, 600),
                    allow_negative_crop=True,
                ),
                resize,
            ],
        ],
    ),
    dict(type='PackDetInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
