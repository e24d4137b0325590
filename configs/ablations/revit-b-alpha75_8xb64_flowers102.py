# ReViT-B with alpha fixed at 75 % on the small data sets
_base_ = '../revit/revit-b_8xb64_flowers102.py'

model = dict(backbone=dict(alpha=0.75, alpha_mode='fixed'))
