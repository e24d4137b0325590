# Shift-T, 90 epochs, with batch norm
_base_ = './shiftvit-t-90e_8xb128_in1k.py'

model = dict(backbone=dict(norm_cfg=dict(type='BN')))
