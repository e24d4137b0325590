# Cascade Mask R-CNN on Swin-T, 12 epochs: Aug-Swin-T without paths
_base_ = '../augswin/cascade-mask-rcnn_augswin-t_8xb2-ms-crop-1x_coco.py'

model = dict(backbone=dict(num_paths=0))
