# AdamW without weight decay on norms, tokens, position tables and gates of residual attention
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-4, betas=(0.9, 0.999), weight_decay=0.05),
    paramwise_cfg=dict(
        norm_decay_mult=0.0,
        custom_keys={
            'relative_position_bias_table': dict(decay_mult=0.0),
            'absolute_pos_embed': dict(decay_mult=0.0),
            'rel_pos_': dict(decay_mult=0.0),
            'cls_': dict(decay_mult=0.0),
            'alpha': dict(decay_mult=0.0),
        },
    ),
)
