# Aug-ViT-nano classifies single digits of 32 pixels, cut into patches of 8
_base_ = './revit-nano_digits-cls.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmvit_ext.AugViT',
        arch='nano',
        img_size=32,
        patch_size=8,
        out_type='cls_token',
        drop_path_rate=0.0,
    )
)
