# Mask R-CNN on Shift-S, 12 epochs
_base_ = './mask-rcnn_shiftvit-t_8xb2-ms-crop-1x_coco.py'

model = dict(backbone=dict(arch='small'))
