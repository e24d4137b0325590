# Shift-T, 90 epochs, with batch norm and ReLU
_base_ = './shiftvit-t-90e-bn_8xb128_in1k.py'

model = dict(backbone=dict(act_cfg=dict(type='ReLU')))
