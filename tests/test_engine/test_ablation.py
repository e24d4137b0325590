"""Miniature ablations: what is trained, what is kept, what the table says."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from mmvit_ext.datasets import DigitSettings, make_digits
from mmvit_ext.engine.ablation import STUDIES, Run, ablation_table, run_studies, train_one

CONFIGS = Path(__file__).parents[2] / 'configs' / 'demo'


def results_of(top1, data=('digits', 'fashion-mnist'), seeds=(0, 1, 2)):
    """A result for every run, with accuracies from ``top1(study index, value, data, seed)``."""
    return [
        {**asdict(Run(s.title, value, name, seed, 1)), 'top1': top1(i, value, name, seed)}
        for i, s in enumerate(STUDIES)
        for value in s.values
        for name in data
        for seed in seeds
    ]


def test_table_gives_mean_and_spread_over_seeds():
    rng = np.random.default_rng(0)
    scores = {}

    def score(i, value, name, seed):
        return scores.setdefault((i, value, name), rng.uniform(50, 90, 3).tolist())[seed]

    lines = ablation_table(results_of(score)).splitlines()[2:]
    assert len(lines) == 9
    rows = [(i, value) for i, s in enumerate(STUDIES) for value in s.values]
    for line, (i, value) in zip(lines, rows):
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        assert cells[1] == f'{STUDIES[i].setting} = {value}'
        for cell, name in zip(cells[2:], ('digits', 'fashion-mnist')):
            mean, spread = np.mean(scores[i, value, name]), np.std(scores[i, value, name], ddof=1)
            assert cell == f'{mean:.2f} ± {spread:.2f}'


def test_table_shows_what_is_missing():
    results = [r for r in results_of(lambda *_: 50.0) if r['value'] != 2]
    assert ' - |' in ablation_table(results).splitlines()[-1]


def test_results_that_are_there_are_not_computed_again(tmp_path):
    results = [{**r, 'seconds': 1.0} for r in results_of(lambda *_: 12.5, data=('digits',))]
    (tmp_path / 'results.json').write_text(json.dumps(results))
    nowhere = {'digits': tmp_path / 'no data'}
    assert run_studies(tmp_path, nowhere, range(3), epochs=1, jobs=1, out=tmp_path) == results


@pytest.mark.parametrize('study', STUDIES, ids=lambda s: s.setting)
def test_a_run_sets_the_backbone_and_gives_an_accuracy(study, tmp_path, monkeypatch):
    data = tmp_path / 'digits'
    make_digits(data, DigitSettings('imagenet', 4, 8, height=32, width=32))
    built = []
    from mmengine.runner import Runner

    from_cfg = Runner.from_cfg
    monkeypatch.setattr(
        Runner, 'from_cfg', lambda cfg: built.append(cfg.model.backbone) or from_cfg(cfg)
    )
    run = Run(study.title, study.values[0], 'digits', 0, 1)
    top1 = train_one(run, str(CONFIGS / f'{study.config}.py'), str(data), str(tmp_path / 'work'))
    assert top1 in [12.5 * i for i in range(9)]
    assert built[0][study.setting] == study.values[0]
    assert all(built[0][key] == value for key, value in study.fixed.items())
