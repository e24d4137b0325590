# UperNet on ReViT-B, ADE20K, through a pyramid of four of its maps
_base_ = [
    '../_base_/models/upernet.py',
    '../_base_/datasets/ade20k_512x512.py',
    '../_base_/schedules/adamw_160k_seg.py',
    '../_base_/runtime_seg.py',
]

model = dict(
    backbone=dict(
        type='mmvit_ext.ReViT',
        arch='base',
        img_size=512,
        drop_path_rate=0.2,
        out_indices=(2, 5, 8, 11),
    ),
    neck=dict(
        type='Feature2Pyramid',
        embed_dim=768,
        rescales=[4, 2, 1, 0.5],
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    decode_head=dict(in_channels=[768, 768, 768, 768]),
    auxiliary_head=dict(in_channels=768),
)
