# ReSwin-nano classifies single digits of 32 pixels: the demo's pretraining, in ImageNet's folder
# layout. Windows of 4 fit its maps; the bias tables are resampled when a detector takes them over.
_base_ = ['../_base_/schedules/adamw.py', '../_base_/runtime_cls.py']

data_root = 'data/digits_cls'

model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        num_classes=10, mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True
    ),
    backbone=dict(
        type='mmvit_ext.ReSwin', arch='nano', window_size=4, out_indices=(3,), drop_path_rate=0.0
    ),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=10, in_channels=384, topk=(1,)),
)

train_dataloader = dict(
    batch_size=32,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        type='CustomDataset',
        data_root=data_root,
        data_prefix='train',
        pipeline=[dict(type='mmvit_ext.LoadImageFromFile'), dict(type='PackInputs')],
    ),
)
val_dataloader = dict(
    batch_size=64,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CustomDataset',
        data_root=data_root,
        data_prefix='val',
        pipeline=[dict(type='mmvit_ext.LoadImageFromFile'), dict(type='PackInputs')],
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator

train_cfg = dict(by_epoch=True, max_epochs=8, val_interval=8)
val_cfg = dict()
test_cfg = dict()

optim_wrapper = dict(optimizer=dict(lr=1e-3), clip_grad=dict(max_norm=5.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=50),
    dict(type='CosineAnnealingLR', by_epoch=True, T_max=8, convert_to_iter_based=True),
]
auto_scale_lr = dict(enable=False, base_batch_size=32)
default_hooks = dict(logger=dict(interval=25))
