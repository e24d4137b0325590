# Cascade Mask R-CNN on Aug-Swin-S, 12 epochs
_base_ = './cascade-mask-rcnn_augswin-t_8xb2-ms-crop-1x_coco.py'

model = dict(backbone=dict(arch='small'))
