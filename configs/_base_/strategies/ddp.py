# DistributedDataParallel for tools/dist_train.sh; one process ignores it. Put it last in _base_.
# Every trainable parameter of backbones and heads gets a gradient in every iteration, images
# without objects included: nothing unused has to be searched for. Training changes no buffers but
# those of batch norms, which SyncBN keeps equal. Gradients live in the buckets that are reduced,
# which saves a copy of them all. The graph is not static, as torch's reducer stops at a static one
# when gradients are accumulated.
model_wrapper_cfg = dict(
    type='MMDistributedDataParallel',
    broadcast_buffers=False,
    find_unused_parameters=False,
    gradient_as_bucket_view=True,
    static_graph=False,
)
