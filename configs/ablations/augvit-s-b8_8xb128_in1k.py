# Aug-ViT-S, matrices of 8 x 8 circulant blocks
_base_ = '../augvit/augvit-s_8xb128_in1k.py'

model = dict(backbone=dict(num_blocks=8))
