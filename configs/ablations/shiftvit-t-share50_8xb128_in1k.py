# Shift-T, 50 % of the channels shifted (rounded down to whole groups in each stage)
_base_ = '../shiftvit/shiftvit-t_8xb128_in1k.py'

model = dict(backbone=dict(n_div=8))
