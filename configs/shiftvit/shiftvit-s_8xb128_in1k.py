# Shift-S, ImageNet-1K
_base_ = './shiftvit-t_8xb128_in1k.py'

model = dict(backbone=dict(arch='small'))
