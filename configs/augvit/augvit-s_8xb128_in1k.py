# Aug-ViT-S, ImageNet-1K, as the authors train it: DeiT's recipe, warm-up of 5 epochs, repeated
# augmentation, EMA
_base_ = [
    '../_base_/models/classifier.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/adamw_300e_in1k.py',
    '../_base_/runtime_cls.py',
]

model = dict(
    backbone=dict(type='mmvit_ext.AugViT', arch='small', out_type='cls_token', drop_path_rate=0.1),
    neck=None,
    head=dict(in_channels=384),
)
train_dataloader = dict(sampler=dict(type='RepeatAugSampler'))
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=True, end=5, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, begin=5, end=300),
]
custom_hooks = [dict(type='EMAHook', momentum=4e-5)]
