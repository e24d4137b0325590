# DeiT-S, ImageNet-1K: Aug-ViT-S without paths
_base_ = '../augvit/augvit-s_8xb128_in1k.py'

model = dict(backbone=dict(num_paths=0))
