# Aug-ViT-S with 1 augmented paths
_base_ = '../augvit/augvit-s_8xb128_in1k.py'

model = dict(backbone=dict(num_paths=1))
