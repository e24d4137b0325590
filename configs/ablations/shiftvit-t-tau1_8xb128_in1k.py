# ShiftViT with tau = 1: 75 blocks, whose 225 layers are the paper's depth (the split is ours)
_base_ = '../shiftvit/shiftvit-t_8xb128_in1k.py'

model = dict(backbone=dict(mlp_ratio=1, depths=[12, 16, 35, 12]))
