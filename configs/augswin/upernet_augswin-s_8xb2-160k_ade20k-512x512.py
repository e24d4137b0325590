# UperNet on Aug-Swin-S, ADE20K
_base_ = './upernet_augswin-t_8xb2-160k_ade20k-512x512.py'

model = dict(backbone=dict(arch='small'))
