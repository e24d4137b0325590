# The front door's sibling: Mask R-CNN on ReSwin-T, COCO, the published recipe
_base_ = './reswin/mask-rcnn_reswin-t_8xb2-ms-3x_coco.py'
