# Parameters, gradients and optimizer states are shared out over the processes, block by block
# (FullyShardedDataParallel); needs tools/dist_train.sh. Put it last in _base_. Checkpoints are
# plain ones. use_orig_params keeps the parameters apart: groups differ in weight decay, frozen
# ones stand beside trained ones.
runner_type = 'FlexibleRunner'
strategy = dict(
    type='mmvit_ext.FSDPStrategy',
    model_wrapper=dict(
        type='MMFullyShardedDataParallel',
        sharding_strategy='FULL_SHARD',
        use_orig_params=True,
        auto_wrap_policy=dict(type='mmvit_ext.wrap_blocks'),
    ),
)
