_base_ = './runtime_det.py'

default_scope = 'mmseg'

default_hooks = dict(
    logger=dict(log_metric_by_epoch=False),
    checkpoint=dict(by_epoch=False, interval=16000),
)
log_processor = dict(by_epoch=False)
visualizer = dict(type='SegLocalVisualizer')
