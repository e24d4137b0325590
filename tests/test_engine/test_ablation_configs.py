"""Configs of ablations: the text says what the table's row says."""

import argparse
import json

import pytest

from mmvit_ext.engine.ablation_configs import ablation_configs, write_ablations
from mmvit_ext.errors import UsageError

ROW = {
    'about': 'Share {share} on {set}',
    'name': 'net-{share}_{set}',
    'base': '../net_{set}.py',
    'grid': {'share': {'20': 0.2, '50': 0.5}, 'set': {'pets': ''}},
    'options': {'model.backbone.share': '{share}', 'model.backbone.form': 'dense'},
}
LONG = {
    'about': 'Long',
    'name': 'long',
    'base': './net.py',
    'options': {
        'steps': [{'type': 'A' * 40, 'on': True}, {'type': 'B' * 40, 'rate': 1e-05}],
        'outer.inner': {'first': 'C' * 60, 'second': ['D' * 40, None], 'third': {'x': 1}},
    },
}


def settings(text):
    scope = {}
    exec(text, scope)
    return {key: value for key, value in scope.items() if not key.startswith('__')}


def test_a_grid_gives_a_config_a_combination():
    texts = ablation_configs([ROW])
    assert set(texts) == {'net-20_pets', 'net-50_pets'}
    text = texts['net-50_pets']
    assert text.startswith('# Share 50 on pets\n')
    assert settings(text) == {
        '_base_': '../net_pets.py',
        'model': {'backbone': {'share': 0.5, 'form': 'dense'}},
    }


def test_long_settings_are_broken_and_mean_the_same():
    text = ablation_configs([LONG])['long']
    assert max(map(len, text.splitlines())) <= 100
    options = LONG['options']
    assert settings(text) == {
        '_base_': './net.py',
        'steps': options['steps'],
        'outer': {'inner': options['outer.inner']},
    }


def test_a_name_that_stands_twice_is_refused():
    with pytest.raises(UsageError, match='name=long: stands twice'):
        ablation_configs([LONG, LONG])


def test_writing_then_checking(tmp_path):
    table = tmp_path / 'table.json'
    table.write_text(json.dumps([ROW]))
    (tmp_path / 'no_longer.py').write_text('')
    with pytest.raises(UsageError, match='net-20_pets, net-50_pets, no_longer'):
        write_ablations(argparse.Namespace(table=str(table), check=True))
    write_ablations(argparse.Namespace(table=str(table), check=False))
    assert sorted(f.name for f in tmp_path.glob('*.py')) == ['net-20_pets.py', 'net-50_pets.py']
    write_ablations(argparse.Namespace(table=str(table), check=True))
