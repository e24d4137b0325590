# 36 epochs of AdamW, steps at 27 and 33; the learning rate is for 8 GPUs x 2 images
_base_ = './adamw_1x_det.py'

train_cfg = dict(max_epochs=36)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(type='MultiStepLR', begin=0, end=36, by_epoch=True, milestones=[27, 33], gamma=0.1),
]
