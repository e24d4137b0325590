# ViT-B fine-tuned on CIFAR-100: ReViT-B without residual attention
_base_ = '../revit/revit-b_8xb64_cifar100.py'

model = dict(backbone=dict(alpha=1.0, alpha_mode='fixed'))
