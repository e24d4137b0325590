# ReSwin-T, ImageNet-1K, as ADiko1997/ReViT trains it: four steps of 256 images make a batch of
# 1024. The learning rate is the printed one. Their dropout of 0.2 reaches nothing in their model.
_base_ = [
    '../_base_/models/classifier.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/adamw_300e_in1k.py',
    '../_base_/runtime_cls.py',
]

model = dict(
    backbone=dict(type='mmvit_ext.ReSwin', arch='tiny', drop_path_rate=0.1, out_indices=(3,)),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8)], probs=[0.99]),
)
train_pipeline = _base_.train_pipeline
train_pipeline[3].update(num_policies=6)
train_pipeline[4].update(erase_prob=0.1)
train_dataloader = dict(batch_size=256, dataset=dict(pipeline=train_pipeline))
optim_wrapper = dict(accumulative_counts=4)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=True, end=20, convert_to_iter_based=True),
    _base_.param_scheduler[1],
]
# counted without accumulation, as mmengine does
auto_scale_lr = dict(base_batch_size=256)
