# Aug-ViT-S, one dense path (linear in the authors' code)
_base_ = './augvit-s-dense_8xb128_in1k.py'

model = dict(backbone=dict(num_paths=1))
