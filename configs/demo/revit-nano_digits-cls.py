# ReViT-nano classifies single digits of 32 pixels, cut into patches of 8
_base_ = './reswin-nano_digits-cls.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmvit_ext.ReViT',
        arch='nano',
        img_size=32,
        patch_size=8,
        out_type='avg_featmap',
        drop_path_rate=0.0,
    ),
    neck=None,
    head=dict(in_channels=96),
)
