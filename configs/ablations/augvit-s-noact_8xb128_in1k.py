# Aug-ViT-S, paths without activation
_base_ = '../augvit/augvit-s_8xb128_in1k.py'

model = dict(backbone=dict(act='none'))
