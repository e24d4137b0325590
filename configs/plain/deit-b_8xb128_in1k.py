# DeiT-B, ImageNet-1K: Aug-ViT-B without paths
_base_ = '../augvit/augvit-b_8xb128_in1k.py'

model = dict(backbone=dict(num_paths=0))
