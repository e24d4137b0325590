"""The model zoo: what is shipped is right, and what is wrong is named."""

import argparse
import json
import re
from pathlib import Path

import pytest
import torch
import yaml
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from mmvit_ext.engine.zoo import check_zoo, pages, problems, read_zoo
from mmvit_ext.errors import UsageError

ROOT = Path(__file__).parents[2]
SHIPPED = [model for family in read_zoo(ROOT) for model in family.models]


def test_shipped_zoo_is_right_and_its_pages_fresh():
    assert problems(ROOT) == []
    for page, text in pages(ROOT).items():
        assert (ROOT / page).read_text(encoding='utf-8') == text, page


@pytest.mark.parametrize('model', SHIPPED, ids=lambda m: m['Name'])
def test_parameters_are_those_of_the_config(model):
    cfg = Config.fromfile(ROOT / model['Config'])
    with torch.device('meta'), DefaultScope.overwrite_default_scope(cfg.default_scope):
        parameters = sum(p.numel() for p in MODELS.build(cfg.model).parameters())
    assert model['Metadata']['Parameters'] == parameters


def test_multiply_adds_are_those_of_the_complexity_table():
    """docs/complexity.md counts the same classifiers, and compares them with the papers."""
    rows = re.findall(r'^\| ([^|]+) \| 224 \| [^|]+ \| ([\d.]+) G', table_text(), re.M)
    counted = {name: float(adds) for name, adds in rows}
    rows = json.loads((ROOT / 'docs' / 'complexity.json').read_text())['models']
    types = [row['backbone'] for row in rows]
    checked = 0
    for model in SHIPPED:
        if 'FLOPs' not in model['Metadata']:
            continue
        backbone = dict(Config.fromfile(ROOT / model['Config']).model.backbone)
        backbone.pop('drop_path_rate', None)
        backbone['out_indices'] = list(backbone.get('out_indices', ())) or None
        given = {k: v for k, v in backbone.items() if v is not None}
        for row, wanted in zip(rows, types):
            if given == wanted and row['model'] in counted:
                adds = model['Metadata']['FLOPs'] / 1e9
                assert adds == pytest.approx(counted[row['model']], abs=0.006)
                checked += 1
                break
    assert checked >= 15


def table_text():
    return (ROOT / 'docs' / 'complexity.md').read_text(encoding='utf-8')


def test_weights_are_the_release_files_of_the_authors():
    weights = {model['Name']: model['Weights'] for model in SHIPPED if 'Weights' in model}
    release = 'https://github.com/microsoft/SPACH/releases/download/v1.0/shiftvit_'
    assert weights == {
        'shiftvit-t_8xb128_in1k': f'{release}tiny_r2.pth',
        'shiftvit-s_8xb128_in1k': f'{release}small_r2.pth',
        'shiftvit-light-t_8xb128_in1k': f'{release}tiny_light.pth',
        'shiftvit-light-s_8xb128_in1k': f'{release}small_light.pth',
    }


@pytest.fixture
def zoo(tmp_path):
    """A zoo of one family with one model, and a function that changes and writes its metafile."""
    folder = tmp_path / 'configs' / 'net'
    folder.mkdir(parents=True)
    (tmp_path / 'docs').mkdir()
    (folder / 'net-t_1xb2_in1k.py').write_text('')
    (folder / 'README.md').write_text('# Net\n\n<!-- zoo -->\nold\n<!-- /zoo -->\nend\n')
    (tmp_path / 'model-index.yml').write_text('Import:\n  - configs/net/metafile.yml\n')

    def write(collection=(), **model):
        entry = {
            'Name': 'net-t_1xb2_in1k',
            'In Collection': 'Net',
            'Config': 'configs/net/net-t_1xb2_in1k.py',
            'Metadata': {'Parameters': 1234567, 'FLOPs': 2340000000},
            **model,
        }
        first = {'Name': 'Net', 'README': 'configs/net/README.md', **dict(collection)}
        text = yaml.safe_dump({'Collections': [first], 'Models': [entry]}, sort_keys=False)
        (folder / 'metafile.yml').write_text(text)
        return tmp_path

    return write


def test_a_right_zoo_has_no_problems_and_a_table(zoo):
    result = {
        'Task': 'Image Classification',
        'Dataset': 'ImageNet-1k',
        'Metrics': {'Top 1 Accuracy': 81.5},
        'Source': 'a paper',
        'Verified': False,
    }
    root = zoo(Results=[result])
    assert problems(root) == []
    readme = pages(root)[Path('configs/net/README.md')]
    cells = '1.23 M | 2.34 G | Top 1 Accuracy 81.5 (not verified) | a paper |'
    row = f'| [net-t_1xb2_in1k](net-t_1xb2_in1k.py) | {cells}'
    assert readme.startswith('# Net\n\n<!-- zoo -->\n| config ') and row in readme
    assert readme.endswith('<!-- /zoo -->\nend\n') and 'old' not in readme
    linked = row.replace('](net', '](../configs/net/net')
    assert linked in pages(root)[Path('docs/model_zoo.md')]


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'Name': 'Net-T_1xb2_in1k'}, 'capitals'),
        ({'Config': 'configs/net/other.py'}, 'Config=configs/net/other.py: not the config'),
        ({'In Collection': 'Nets'}, 'In Collection=Nets: no collection'),
        ({'Weights': 'file:///tmp/net.pth'}, 'no public address'),
        ({'Metadata': {'Parameters': 1, 'Epochs': [300]}}, r'Metadata.Epochs=\[300\]'),
        ({'Results': [{'Task': 'T', 'Dataset': 'D', 'Metrics': {}}]}, 'give Task, .* and Source'),
        ({'collection': {'README': 'nowhere.md'}}, 'README is no file'),
    ],
)
def test_a_wrong_entry_is_named(zoo, change, message):
    found = problems(zoo(**change))
    assert any(re.search(message, line) for line in found), found
    assert all(
        line.startswith(('configs/net/metafile.yml, Net', 'configs: net')) for line in found
    ) or ('net-t_1xb2_in1k' in found[0].lower())


def test_a_config_and_a_metafile_that_are_not_listed_are_named(zoo):
    root = zoo()
    (root / 'configs/net/net-s_1xb2_in1k.py').write_text('')
    other = root / 'configs/other'
    other.mkdir()
    (other / 'metafile.yml').write_text('Models: []\n')
    assert problems(root) == [
        'model-index.yml: configs/other/metafile.yml has no entry; add one',
        'configs: net-s_1xb2_in1k stands in no metafile; add it',
    ]


def test_stale_pages_are_named_and_written(zoo):
    root = zoo()
    with pytest.raises(UsageError, match='model_zoo.md: not what the metafiles say'):
        check_zoo(argparse.Namespace(root=str(root), write=False))
    check_zoo(argparse.Namespace(root=str(root), write=True))
    check_zoo(argparse.Namespace(root=str(root), write=False))


def test_a_missing_metafile_is_named(tmp_path):
    (tmp_path / 'model-index.yml').write_text('Import:\n  - configs/net/metafile.yml\n')
    with pytest.raises(UsageError, match='net/metafile.yml: No such file'):
        read_zoo(tmp_path)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'Metadata': {'FLOPs': 1}}, 'net-t_1xb2_in1k: give Metadata.Parameters'),
        ({'Name': 'net-t_1xb2_mnist'}, 'net-t_1xb2_mnist: ends in no data set'),
    ],
)
def test_an_entry_without_what_the_pages_need_is_named(zoo, change, message):
    with pytest.raises(UsageError, match=message):
        read_zoo(zoo(**change))
