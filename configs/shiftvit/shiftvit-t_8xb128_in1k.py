# Shift-T, ImageNet-1K, as microsoft/SPACH trains it: repeated augmentation, EMA, no clipping
_base_ = [
    '../_base_/models/classifier.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/adamw_300e_in1k.py',
    '../_base_/runtime_cls.py',
]

model = dict(backbone=dict(type='mmvit_ext.ShiftViT', arch='tiny', out_indices=(3,)))
train_dataloader = dict(sampler=dict(type='RepeatAugSampler'))
custom_hooks = [dict(type='EMAHook', momentum=4e-5)]
