"""The robustness table of a config and a checkpoint, for a model whose answers are known."""

import json

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import MODELS

from mmvit_ext.engine.cli import robustness_parser
from mmvit_ext.engine.robustness import (
    check_shares,
    classifier_config,
    model_names,
    robustness,
    spread,
    test_set,
)
from mmvit_ext.errors import UsageError

test_set.__test__ = False
DETECTOR = 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py'
CLASSIFIER = 'configs/demo/reswin-nano_digits-cls.py'


@MODELS.register_module()
class RightOfCut(BaseModel):
    """Class 1 where the brightest column is at the cut or right of it; the cut is its weight."""

    def __init__(self, data_preprocessor=None):
        super().__init__(data_preprocessor=data_preprocessor)
        self.cut = torch.nn.Parameter(torch.tensor([0.0]))

    def forward(self, inputs, data_samples, mode):
        # black is below zero after normalisation, so the sum is largest where the pixel is
        columns = inputs.sum(dim=(1, 2)).argmax(dim=1)
        labels = (columns >= self.cut).long()
        return [s.set_pred_label(label) for s, label in zip(data_samples, labels)]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Four images of 10 x 10 with one bright pixel, their config, and two checkpoints."""
    root = tmp_path_factory.mktemp('robustness')
    for label, columns in {'left': (0, 3), 'right': (6, 9)}.items():
        (root / 'data' / label).mkdir(parents=True)
        for column in columns:
            image = np.zeros((10, 10, 3), np.uint8)
            image[5, column] = 255
            cv2.imwrite(str(root / 'data' / label / f'{column}.png'), image)
    write_config(root / 'toy.py', str(root / 'data'))
    for name, cut in {'cut5': 5.0, 'cut0': 0.0}.items():
        torch.save({'state_dict': {'cut': torch.tensor([cut])}}, root / f'{name}.pth')
    return root


def write_config(path, data_root, scope='mmpretrain', pack='PackInputs'):
    dataset = {
        'type': 'CustomDataset',
        'data_root': data_root,
        'pipeline': [{'type': 'LoadImageFromFile'}, {'type': pack}],
    }
    cfg = {
        'default_scope': scope,
        'model': {'type': 'RightOfCut'},
        # beside the model, as mmpretrain's own data set files have it
        'data_preprocessor': {
            'type': 'ClsDataPreprocessor',
            'mean': [127.5] * 3,
            'std': [127.5] * 3,
        },
        'test_dataloader': {'batch_size': 3, 'num_workers': 0, 'dataset': dataset},
    }
    Config(cfg).dump(path)


def run(folder, *options, config='toy.py', checkpoint='cut5.pth'):
    args = [str(folder / config), str(folder / checkpoint), '--out', str(folder / 'out')]
    robustness(robustness_parser().parse_args([*args, *map(str, options)]))
    return json.loads((folder / 'out' / 'robustness.json').read_text())


def by_kind(model):
    found = {}
    for row in model['rows']:
        found.setdefault(row['kind'], []).append(row['top1'])
    return found


def test_table_of_one_model_is_what_the_moves_give(folder, capsys):
    found = run(folder)['models']
    assert len(found) == 1 and found[0]['name'] == 'toy'
    assert (found[0]['images'], found[0]['untouched_top1']) == (4, 100)
    # the pixel, in row 5 and column 0, 3, 6 or 9, moves by 2, 3, 4 and 6; gone, it counts as left
    assert by_kind(found[0]) == {
        'horizontal': [50, 50, 25, 0],
        'vertical': [100, 100, 100, 50],
        'shrink': [100, 100, 100, 100],
    }
    assert '| horizontal | 45 % | 25.00 | 75.00 |' in capsys.readouterr().out
    page = (folder / 'out' / 'robustness.md').read_text()
    assert '| untouched | 0 % | 100.00 |  |' in page
    assert (folder / 'out' / 'robustness.png').stat().st_size > 5000


def test_second_model_and_the_difference(folder):
    second = ['--second', folder / 'toy.py', folder / 'cut0.pth']
    found = run(folder, '--shares', 0.6, 0.3, *second)
    assert [m['name'] for m in found['models']] == [
        str(folder / 'cut5.pth'), str(folder / 'cut0.pth'),
    ]  # fmt: skip
    # at cut 0 the answer is always 1: half of the images are right, whatever is done to them
    assert by_kind(found['models'][1]) == {
        'horizontal': [50, 50], 'vertical': [50, 50], 'shrink': [50, 50],
    }  # fmt: skip
    points = {(r['kind'], r['share']): r['points'] for r in found['first_loses_less_by']}
    assert points['horizontal', 0.3] == -50 and points['horizontal', 0.6] == -100
    assert points['shrink', 0.6] == 0


def test_few_images_are_spread_over_the_classes(folder):
    assert spread(10, 4) == [0, 2, 5, 7]
    assert list(spread(3, None)) == list(spread(3, 5)) == [0, 1, 2]
    # columns 0 and 6: the second alone stays on its side, 3 pixels to the right
    found = run(folder, '--limit', 2, '--shares', 0.45)['models'][0]
    assert found['images'] == 2 and by_kind(found)['horizontal'] == [50]


def test_images_change_right_before_they_are_packed(folder):
    cfg = classifier_config(str(folder / 'toy.py'), None)
    dataset = test_set(cfg, {'type': 'mmvit_ext.Translate', 'share': 0.3})
    kinds = [type(step).__name__ for step in dataset.pipeline.transforms]
    assert kinds == ['LoadImageFromFile', 'Translate', 'PackInputs']
    assert dataset[1]['inputs'][0, 5].tolist() == [0, 0, 0, 0, 0, 0, 255, 0, 0, 0]
    assert len(cfg.test_dataloader.dataset.pipeline) == 2


def test_data_root_takes_the_place_of_the_configs(folder, tmp_path):
    write_config(tmp_path / 'moved.py', '/nowhere')
    with pytest.raises(UsageError, match='test_dataloader.dataset.data_root: /nowhere does not'):
        classifier_config(str(tmp_path / 'moved.py'), None)
    cfg = classifier_config(str(tmp_path / 'moved.py'), str(folder / 'data'))
    assert cfg.test_dataloader.dataset.data_root == str(folder / 'data')


@pytest.mark.parametrize('share', [0, 1, -0.15, 15, float('nan')])
def test_shares_out_of_range(share):
    with pytest.raises(UsageError, match=f'--shares={share:g}: not between 0 and 1'):
        check_shares([0.15, share])


def test_shares_are_sorted_and_taken_once():
    assert check_shares([0.6, 0.15, 0.6]) == [0.15, 0.6]


def test_other_scopes_and_pipelines_are_refused(tmp_path):
    with pytest.raises(UsageError, match="default_scope='mmdet'.*give a config of mmpretrain"):
        classifier_config(DETECTOR, None)
    write_config(tmp_path / 'multi.py', '/nowhere', pack='PackMultiTaskInputs')
    with pytest.raises(UsageError, match='has no PackInputs.*LoadImageFromFile, PackMultiTask'):
        classifier_config(str(tmp_path / 'multi.py'), None)
    Config({'default_scope': 'mmpretrain'}).dump(tmp_path / 'bare.py')
    with pytest.raises(UsageError, match='test_dataloader in .*bare.py: missing'):
        classifier_config(str(tmp_path / 'bare.py'), None)


def test_missing_files_are_named(folder):
    with pytest.raises(UsageError, match='checkpoint=.*none.pth: no such file'):
        run(folder, checkpoint='none.pth')
    with pytest.raises(UsageError, match='--second=none.pth: no such file'):
        run(folder, '--second', folder / 'toy.py', 'none.pth')
    with pytest.raises(UsageError, match='config=none.py: no such file'):
        run(folder, '--second', 'none.py', folder / 'cut0.pth')
    with pytest.raises(UsageError, match='--limit=0: give 1 or more'):
        run(folder, '--limit', 0)
    with pytest.raises(UsageError, match='--out=.*toy.py/a: cannot be made'):
        run(folder, '--out', folder / 'toy.py' / 'a')


@pytest.mark.parametrize(
    'content, message',
    [
        ({'state_dict': {'other': torch.ones(1)}}, '1 weights are missing, such as cut'),
        ({'cut': torch.ones(2)}, 'not of this model .size mismatch for cut'),
        ('text', 'holds a str, not a dict of weights'),
    ],
)
def test_checkpoints_of_another_model_are_refused(folder, content, message):
    torch.save(content, folder / 'wrong.pth')
    with pytest.raises(UsageError, match=message):
        run(folder, checkpoint='wrong.pth')


def test_second_test_set_must_be_as_large(folder):
    (folder / 'fewer' / 'left').mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(folder / 'fewer' / 'left' / 'a.png'), np.zeros((10, 10, 3), np.uint8))
    write_config(folder / 'fewer.py', str(folder / 'fewer'))
    with pytest.raises(UsageError, match='--second: its test set has 1 images, .* config 4'):
        run(folder, '--second', folder / 'fewer.py', folder / 'cut5.pth')


def test_names_are_the_configs_or_the_checkpoints():
    assert model_names([('c/a.py', 'w1.pth'), ('c/b.py', 'w2.pth')]) == ['a', 'b']
    assert model_names([('c/a.py', 'w1.pth'), ('d/a.py', 'w2.pth')]) == ['w1.pth', 'w2.pth']
    assert model_names([('c/a.py', 'w1.pth')]) == ['a']
