# UperNet on Shift-S, ADE20K
_base_ = './upernet_shiftvit-t_8xb2-160k_ade20k-512x512.py'

model = dict(backbone=dict(arch='small'))
