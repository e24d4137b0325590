# 300 epochs of AdamW with a cosine, 20 of them warm-up from 1e-6; the learning rate is for a batch
# of 1024. As in timm, nothing of one dimension decays: norms and biases.
_base_ = './adamw.py'

train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=300, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')

optim_wrapper = dict(
    optimizer=dict(lr=1e-3),
    paramwise_cfg=dict(bias_decay_mult=0.0, flat_decay_mult=0.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=True, end=20, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, begin=20, end=300),
]

auto_scale_lr = dict(enable=False, base_batch_size=1024)
