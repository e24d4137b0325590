# Swin-T, ImageNet-1K, with ReSwin-T's recipe: ReSwin-T without residual attention
_base_ = '../reswin/reswin-t_1xb256-acc4_in1k.py'

model = dict(backbone=dict(alpha=1.0))
