"""Re-pointing a config's data, and the message where they are missing."""

import pytest
from mmengine.config import Config

from mmvit_ext.engine.data_root import check_data, repoint
from mmvit_ext.errors import UsageError

DETECTION = 'configs/cascade_rcnn_reswin_t_coco.py'
LOADERS = ('train_dataloader', 'val_dataloader')


def test_every_dataset_and_evaluator_moves(tmp_path):
    cfg = Config.fromfile(DETECTION)
    repoint(cfg, str(tmp_path))
    for part in ('train', 'val', 'test'):
        assert cfg[f'{part}_dataloader'].dataset.data_root == str(tmp_path)
    for part in ('val', 'test'):
        expected = tmp_path / 'annotations' / 'instances_val2017.json'
        assert cfg[f'{part}_evaluator'].ann_file == str(expected)


def test_wrapped_and_joined_datasets_move():
    inner = {'type': 'CocoDataset', 'data_root': 'data/coco'}
    cfg = Config(
        {
            'train_dataloader': {
                'dataset': {
                    'type': 'RepeatDataset',
                    'dataset': {'type': 'ConcatDataset', 'datasets': [dict(inner), dict(inner)]},
                }
            },
            'val_evaluator': [{'ann_file': 'data/coco/a.json'}, {'prefix': 'other/data/coco'}],
        }
    )
    repoint(cfg, '/new')
    joined = cfg.train_dataloader.dataset.dataset.datasets
    assert [d.data_root for d in joined] == ['/new', '/new']
    assert cfg.val_evaluator[0].ann_file == '/new/a.json'
    assert cfg.val_evaluator[1].prefix == 'other/data/coco'


@pytest.mark.parametrize(
    'roots, found', [(['data/a', 'data/b'], 'data/a, data/b'), ([None], 'none')]
)
def test_several_or_no_folders_are_refused(roots, found):
    datasets = [{'type': 'X', 'data_root': root} for root in roots]
    cfg = Config({'train_dataloader': {'dataset': {'datasets': datasets}}})
    with pytest.raises(UsageError, match=f'found: {found}.*--cfg-options'):
        repoint(cfg, '/new')


def test_missing_folder_names_field_path_and_remedies(tmp_path):
    cfg = Config.fromfile(DETECTION)
    repoint(cfg, str(tmp_path / 'nowhere'))
    with pytest.raises(UsageError) as error:
        check_data(cfg, LOADERS)
    message = str(error.value)
    assert message.startswith(f'train_dataloader.dataset.data_root: {tmp_path}/nowhere does not')
    assert '--data-root DIR' in message and 'make_digits.py DIR --layout coco' in message
    assert '\n' not in message


def test_missing_parts_are_found_one_by_one(tmp_path):
    cfg = Config.fromfile(DETECTION)
    repoint(cfg, str(tmp_path))
    parts = [
        ('train_dataloader.dataset.ann_file', 'annotations/instances_train2017.json'),
        ('train_dataloader.dataset.data_prefix.img', 'train2017'),
        ('val_dataloader.dataset.ann_file', 'annotations/instances_val2017.json'),
        ('val_dataloader.dataset.data_prefix.img', 'val2017'),
    ]
    for field, part in parts:
        with pytest.raises(UsageError, match=field):
            check_data(cfg, LOADERS)
        (tmp_path / part).mkdir(parents=True)
    check_data(cfg, LOADERS)


def test_remote_data_are_not_looked_for():
    dataset = {'type': 'CocoDataset', 'data_root': 's3://bucket/coco', 'ann_file': 'a.json'}
    check_data(Config({'train_dataloader': {'dataset': dataset}}), LOADERS)


def test_only_imagenet_names_a_folder_by_its_split(tmp_path):
    for type_, missing in (('ImageNet', True), ('OxfordIIITPet', False)):
        dataset = {'type': type_, 'data_root': str(tmp_path), 'split': 'trainval'}
        cfg = Config({'default_scope': 'mmpretrain', 'train_dataloader': {'dataset': dataset}})
        if missing:
            with pytest.raises(UsageError, match='dataset.split: .*trainval does not exist'):
                check_data(cfg, ('train_dataloader',))
        else:
            check_data(cfg, ('train_dataloader',))


def test_data_sets_that_fetch_themselves_may_be_absent(tmp_path):
    cfg = Config.fromfile('configs/revit/revit-b_8xb64_cifar100.py')
    repoint(cfg, str(tmp_path / 'nowhere'))
    check_data(cfg, LOADERS)


@pytest.mark.parametrize(
    ('folders', 'classes', 'fits'), [(2, None, False), (2, ['a', 'b'], True), (0, None, True)]
)
def test_folders_of_imagenet_are_counted(folders, classes, fits, tmp_path):
    (tmp_path / 'train').mkdir()
    for i in range(folders):
        (tmp_path / 'train' / str(i)).mkdir()
    dataset = {'type': 'ImageNet', 'data_root': str(tmp_path), 'split': 'train'}
    dataset['metainfo'] = {'classes': classes}
    cfg = Config({'default_scope': 'mmpretrain', 'train_dataloader': {'dataset': dataset}})
    if fits:
        check_data(cfg, ('train_dataloader',))
    else:
        with pytest.raises(UsageError, match='train has folders of 2 classes, not 1000; set train'):
            check_data(cfg, ('train_dataloader',))
