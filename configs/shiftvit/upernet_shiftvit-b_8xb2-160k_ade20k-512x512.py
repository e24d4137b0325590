# UperNet on Shift-B, ADE20K
_base_ = './upernet_shiftvit-t_8xb2-160k_ade20k-512x512.py'

model = dict(
    backbone=dict(arch='base'),
    decode_head=dict(in_channels=[128, 256, 512, 1024]),
    auxiliary_head=dict(in_channels=512),
)
