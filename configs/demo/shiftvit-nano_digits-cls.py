# ShiftViT-nano classifies single digits of 32 pixels
_base_ = './reswin-nano_digits-cls.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmvit_ext.ShiftViT',
        arch='nano',
        out_indices=(3,),
        drop_path_rate=0.0,
    )
)
