# Oxford-IIIT Pet
_base_ = './transfer_224.py'

train_dataloader = dict(dataset=dict(type='OxfordIIITPet', data_root='data/pets', split='trainval'))
val_dataloader = dict(dataset=dict(type='OxfordIIITPet', data_root='data/pets'))
test_dataloader = val_dataloader
