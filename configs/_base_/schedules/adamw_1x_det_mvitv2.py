# MViTv2's settings: a shorter warm-up, more decay, a learning rate for 8 GPUs x 8 images
_base_ = './adamw_1x_det.py'

optim_wrapper = dict(optimizer=dict(lr=1.6e-4, weight_decay=0.1))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=250),
    _base_.param_scheduler[1],
]
auto_scale_lr = dict(base_batch_size=64)
