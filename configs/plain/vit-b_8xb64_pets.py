# ViT-B fine-tuned on Oxford-IIIT Pet: ReViT-B without residual attention
_base_ = '../revit/revit-b_8xb64_pets.py'

model = dict(backbone=dict(alpha=1.0, alpha_mode='fixed'))
