# MViTv2-T, ImageNet-1K: ReMViTv2-T without residual attention
_base_ = '../remvitv2/remvitv2-t_2xb128-acc8_in1k.py'

model = dict(backbone=dict(alpha=1.0, alpha_mode='fixed'))
