# ViT-B, ImageNet-1K: ReViT-B without residual attention
_base_ = '../revit/revit-b_2xb128-acc16_in1k.py'

model = dict(backbone=dict(alpha=1.0, alpha_mode='fixed'))
