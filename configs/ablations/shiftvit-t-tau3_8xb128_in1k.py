# ShiftViT with tau = 3: 25 blocks, as many multiply-adds as Shift-T (the split is ours)
_base_ = '../shiftvit/shiftvit-t_8xb128_in1k.py'

model = dict(backbone=dict(mlp_ratio=3, depths=[4, 5, 12, 4]))
