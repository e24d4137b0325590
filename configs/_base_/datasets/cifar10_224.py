# CIFAR-10, enlarged to 224 pixels; its images are loaded with the labels, and fetched where absent
_base_ = './transfer_224.py'

train_pipeline = [
    dict(type='RandomResizedCrop', scale=224, backend='pillow', interpolation='bicubic'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='Resize', scale=(224, 224), backend='pillow', interpolation='bicubic'),
    dict(type='PackInputs'),
]
train_dataloader = dict(
    dataset=dict(type='CIFAR10', data_root='data/cifar10', split='train', pipeline=train_pipeline)
)
val_dataloader = dict(
    dataset=dict(type='CIFAR10', data_root='data/cifar10', pipeline=test_pipeline)
)
test_dataloader = val_dataloader
