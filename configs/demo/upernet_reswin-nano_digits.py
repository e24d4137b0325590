# UperNet on ReSwin-nano: digits in scenes of 160 pixels, in ADE20K's folder layout
_base_ = [
    '../_base_/models/upernet.py',
    '../_base_/datasets/ade20k_512x512.py',
    '../_base_/schedules/adamw_160k_seg.py',
    '../_base_/runtime_seg.py',
]

data_root = 'data/digits_ade'
classes = ('background', *(f'digit_{i}' for i in range(10)))
metainfo = dict(classes=classes, palette=[[20 * i, 255 - 20 * i, 90] for i in range(11)])

model = dict(
    data_preprocessor=dict(size=(160, 160)),
    backbone=dict(type='mmvit_ext.ReSwin', arch='nano', drop_path_rate=0.0),
    decode_head=dict(in_channels=[48, 96, 192, 384], channels=96, num_classes=11),
    auxiliary_head=dict(in_channels=192, channels=48, num_classes=11),
)

# Scenes have one size: nothing is resized, and nothing flipped, since digits have a side.
train_pipeline = [
    dict(type='mmvit_ext.LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(160, 160), keep_ratio=True),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    dataset=dict(
        type='BaseSegDataset', metainfo=metainfo, data_root=data_root, pipeline=train_pipeline
    ),
)
val_dataloader = dict(
    num_workers=1,
    dataset=dict(
        type='BaseSegDataset', metainfo=metainfo, data_root=data_root, pipeline=test_pipeline
    ),
)
test_dataloader = val_dataloader

train_cfg = dict(max_iters=400, val_interval=400)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=50),
    dict(type='PolyLR', power=1.0, begin=50, end=400, eta_min=0.0, by_epoch=False),
]
optim_wrapper = dict(optimizer=dict(lr=6e-4, weight_decay=0.05))
auto_scale_lr = dict(base_batch_size=4)
default_hooks = dict(logger=dict(interval=20), checkpoint=dict(interval=400))
