# UperNet on ReSwin-T, ADE20K, with Swin's recipe
_base_ = [
    '../_base_/models/upernet.py',
    '../_base_/datasets/ade20k_512x512.py',
    '../_base_/schedules/adamw_160k_seg.py',
    '../_base_/runtime_seg.py',
]

model = dict(backbone=dict(type='mmvit_ext.ReSwin', arch='tiny', drop_path_rate=0.3))
