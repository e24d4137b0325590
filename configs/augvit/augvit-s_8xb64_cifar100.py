# Aug-ViT-S fine-tuned on CIFAR-100; give its ImageNet weights with model.backbone.init_cfg
_base_ = [
    '../_base_/models/classifier.py',
    '../_base_/datasets/cifar100_224.py',
    '../_base_/schedules/adamw_100e_transfer.py',
    '../_base_/runtime_cls.py',
]

model = dict(
    data_preprocessor=dict(num_classes=100, to_rgb=False),
    backbone=dict(type='mmvit_ext.AugViT', arch='small', out_type='cls_token'),
    neck=None,
    head=dict(num_classes=100, in_channels=384),
)
