# Mask R-CNN on Shift-S, 36 epochs
_base_ = './mask-rcnn_shiftvit-t_8xb2-ms-crop-3x_coco.py'

model = dict(backbone=dict(arch='small'))
