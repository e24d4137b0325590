# Shift-T, channels shifted by 0 pixels
_base_ = '../shiftvit/shiftvit-t_8xb128_in1k.py'

model = dict(backbone=dict(shift_pixels=0))
