# Aug-Swin-B, ImageNet-1K
_base_ = './augswin-t_16xb64_in1k.py'

model = dict(backbone=dict(arch='base', drop_path_rate=0.5), head=dict(in_channels=1024))
