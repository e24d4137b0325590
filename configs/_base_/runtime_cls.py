_base_ = './runtime_det.py'

default_scope = 'mmpretrain'

default_hooks = dict(logger=dict(interval=100))
visualizer = dict(type='UniversalVisualizer')
