# Aug-ViT-S with augmented paths around mlp alone
_base_ = '../augvit/augvit-s_8xb128_in1k.py'

model = dict(backbone=dict(where='mlp'))
