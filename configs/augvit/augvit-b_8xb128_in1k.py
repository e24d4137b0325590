# Aug-ViT-B, ImageNet-1K
_base_ = './augvit-s_8xb128_in1k.py'

model = dict(backbone=dict(arch='base'), head=dict(in_channels=768))
