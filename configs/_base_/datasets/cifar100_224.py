# CIFAR-100, as CIFAR-10
_base_ = './cifar10_224.py'

train_dataloader = dict(dataset=dict(type='CIFAR100', data_root='data/cifar100'))
val_dataloader = dict(dataset=dict(type='CIFAR100', data_root='data/cifar100'))
test_dataloader = val_dataloader
