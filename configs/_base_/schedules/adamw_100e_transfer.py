# 100 epochs of AdamW with a cosine, 5 of them warm-up; the learning rate is for a batch of 512.
# The papers do not print how they train on the small data sets: this is a usual fine-tuning.
_base_ = './adamw.py'

train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=100, val_interval=5)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')

optim_wrapper = dict(
    optimizer=dict(lr=1e-4),
    paramwise_cfg=dict(bias_decay_mult=0.0, flat_decay_mult=0.0),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=True, end=5, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', eta_min=1e-6, by_epoch=True, begin=5, end=100),
]

auto_scale_lr = dict(enable=False, base_batch_size=512)
