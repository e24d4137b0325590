# Aug-ViT-S, two dense paths (linear2 in the authors' code)
_base_ = '../augvit/augvit-s_8xb128_in1k.py'

model = dict(backbone=dict(projection='linear'))
optim_wrapper = dict(paramwise_cfg=dict(custom_keys=dict(shortcut=dict(decay_mult=1.0))))
