# The learning rate falls linearly, as the paper words it, instead of in steps
_base_ = './mask-rcnn_remvitv2-t_8xb8-ms-3x_coco.py'

param_scheduler = [
    _base_.param_scheduler[0],
    dict(
        type='LinearLR',
        start_factor=1.0,
        end_factor=0.0,
        by_epoch=True,
        end=36,
        convert_to_iter_based=True,
    ),
]
