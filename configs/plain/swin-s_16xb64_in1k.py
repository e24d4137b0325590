# Swin-S, ImageNet-1K: Aug-Swin-S without paths
_base_ = '../augswin/augswin-s_16xb64_in1k.py'

model = dict(backbone=dict(num_paths=0))
