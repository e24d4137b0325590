# ReViT-B with alpha fixed at 100 % on the small data sets
_base_ = '../revit/revit-b_8xb64_pets.py'

model = dict(backbone=dict(alpha=1.0, alpha_mode='fixed'))
