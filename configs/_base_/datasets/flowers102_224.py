# Oxford Flowers-102
_base_ = './transfer_224.py'

train_dataloader = dict(
    dataset=dict(type='Flowers102', data_root='data/flowers102', split='trainval')
)
val_dataloader = dict(dataset=dict(type='Flowers102', data_root='data/flowers102'))
test_dataloader = val_dataloader
