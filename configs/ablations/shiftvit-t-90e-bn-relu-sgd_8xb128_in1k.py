# Shift-T trained as a convolutional network is: SGD, 90 epochs, batch norm, ReLU
_base_ = './shiftvit-t-90e-bn-relu_8xb128_in1k.py'

optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='SGD', lr=0.4, momentum=0.9, weight_decay=0.0001),
)
