# Swin-T, ImageNet-1K: Aug-Swin-T without paths
_base_ = '../augswin/augswin-t_16xb64_in1k.py'

model = dict(backbone=dict(num_paths=0))
