# Aug-Swin-T, ImageNet-1K, with Swin's recipe: the paper has none for Swin
_base_ = [
    '../_base_/models/classifier.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/adamw_300e_in1k.py',
    '../_base_/runtime_cls.py',
]

model = dict(
    backbone=dict(type='mmvit_ext.AugSwin', arch='tiny', drop_path_rate=0.2, out_indices=(3,))
)
train_dataloader = dict(batch_size=64)
optim_wrapper = dict(clip_grad=dict(max_norm=5.0))
