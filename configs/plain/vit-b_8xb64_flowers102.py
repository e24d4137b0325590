# ViT-B fine-tuned on Flowers-102: ReViT-B without residual attention
_base_ = '../revit/revit-b_8xb64_flowers102.py'

model = dict(backbone=dict(alpha=1.0, alpha_mode='fixed'))
