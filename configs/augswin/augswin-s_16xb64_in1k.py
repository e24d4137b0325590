# Aug-Swin-S, ImageNet-1K
_base_ = './augswin-t_16xb64_in1k.py'

model = dict(backbone=dict(arch='small', drop_path_rate=0.3))
