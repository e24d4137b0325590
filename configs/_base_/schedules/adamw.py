# AdamW without weight decay on norms, tokens, position tables, gates of residual attention and
# augmented shortcuts (circulant weights have one dimension in the authors' code)
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
            'shortcut': dict(decay_mult=0.0),
        },
    ),
)
