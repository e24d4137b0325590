# 12 epochs of AdamW, steps at 8 and 11; the learning rate is for 8 GPUs x 2 images
_base_ = './adamw.py'

train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=12, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')

param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(type='MultiStepLR', begin=0, end=12, by_epoch=True, milestones=[8, 11], gamma=0.1),
]

auto_scale_lr = dict(enable=False, base_batch_size=16)
