# UperNet on Swin-T, ADE20K: Aug-Swin-T without paths
_base_ = '../augswin/upernet_augswin-t_8xb2-160k_ade20k-512x512.py'

model = dict(backbone=dict(num_paths=0))
