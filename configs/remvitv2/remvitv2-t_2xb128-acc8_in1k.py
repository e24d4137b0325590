# ReMViTv2-T, ImageNet-1K, as ADiko1997/ReViT trains it: eight steps of 256 images make a batch of
# 2048. Weight decay is that of their file; the paper prints 0.1.
_base_ = [
    '../_base_/models/classifier.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/adamw_300e_in1k.py',
    '../_base_/runtime_cls.py',
]

model = dict(
    backbone=dict(type='mmvit_ext.ReMViTv2', arch='tiny', drop_path_rate=0.1, out_indices=(3,))
)
train_pipeline = _base_.train_pipeline
train_pipeline[3].update(num_policies=6)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
optim_wrapper = dict(optimizer=dict(lr=2e-3), accumulative_counts=8, clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=5e-3, by_epoch=True, end=70, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, begin=70, end=300),
]
# counted without accumulation, as mmengine does
auto_scale_lr = dict(base_batch_size=256)
