# ReViT-B, ImageNet-1K, as ADiko1997/ReViT trains it: sixteen steps of 256 images make a batch of
# 4096. The paper prints Adam with a decay of 0.3, which as in ViT stands for AdamW.
_base_ = [
    '../_base_/models/classifier.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/adamw_300e_in1k.py',
    '../_base_/runtime_cls.py',
]

model = dict(
    backbone=dict(type='mmvit_ext.ReViT', arch='base', out_type='avg_featmap', drop_path_rate=0.2),
    neck=None,
)
train_pipeline = _base_.train_pipeline
train_pipeline[3].update(num_policies=6)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
optim_wrapper = dict(
    optimizer=dict(weight_decay=0.3), accumulative_counts=16, clip_grad=dict(max_norm=1.0)
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-4, by_epoch=True, end=30, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', eta_min=3e-7, by_epoch=True, begin=30, end=300),
]
# counted without accumulation, as mmengine does
auto_scale_lr = dict(base_batch_size=256)
