# Shift-T with a transformer's training scheme but for its length: 90 epochs
_base_ = '../shiftvit/shiftvit-t_8xb128_in1k.py'

train_cfg = dict(max_epochs=90)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=True, end=20, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', eta_min=1e-05, by_epoch=True, begin=20, end=90),
]
