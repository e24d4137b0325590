# Swin-B, ImageNet-1K: Aug-Swin-B without paths
_base_ = '../augswin/augswin-b_16xb64_in1k.py'

model = dict(backbone=dict(num_paths=0))
