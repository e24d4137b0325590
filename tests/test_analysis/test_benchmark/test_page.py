"""The page and the JSON of a run."""

import copy
import json

from mmvit_ext.analysis.benchmark import from_json, page, to_json
from mmvit_ext.analysis.benchmark.page import milliseconds


def test_json_and_back(run):
    record = json.loads(json.dumps(to_json([run, run])))
    assert from_json(record) == [run, run]


def test_json_holds_the_figures_too(run):
    rows = to_json([run])['runs'][0]['groups'][0][0]['rows']
    assert rows[1]['figures']['ratio'] == 2.0 and rows[1]['figures']['memory_ratio'] == 0.5
    assert rows[1]['seconds'] == [1.0, 1.2]
    assert rows[2]['figures']['seconds'] is None and rows[2]['reason'] == 'ValueError: 7 | 8'


def test_page_is_the_same_from_the_json(run):
    before = copy.deepcopy(run)
    assert page(from_json(to_json([run])), [['a.png']]) == page([run], [['a.png']])
    assert run == before


def test_table(run):
    lines = page([run], [[]]).splitlines()
    # 8 G multiply-adds in 0.2 s
    start = lines.index('**4 x 3 x 224 x 224, forward, float32** (matrix product: 80 GFLOP/s)')
    head, _, first, second, absent = lines[start + 2 : start + 7]
    assert head.count('|') == first.count('|') == second.count('|') == 12
    # 4 x 4.5 G in 0.55 s against 8 G in 0.2 s
    assert first == (
        '| `reference:A` | 4 | 28.00 | 4.50 | 550 | 9% | 1.00 | 80 | 1.00 | 900 | 82% |'
    )
    assert second == (
        '| `mmvit_ext:A:arch=tiny` | 4 | 27.50 | ? | 1100 | 9% | 2.00 | 40 | 0.50 | 860 | n/a |'
    )
    assert absent.startswith('| `timm:b` | n/a | 5.00 | 1.00 | n/a: ValueError: 7 \\| 8 |')
    assert absent.replace('\\|', '').count('|') == 12


def test_page_tells_machine_command_and_pictures(run):
    text = page([run, run], [['images/a.png'], []])
    assert text.count('## Some CPU, 2 cores\n') == 2
    assert 'CPU Some CPU, 2 cores, torch 2.14.1.' in text and 'device cpu, threads 1.' in text
    assert '```sh\npython tool.py\n```' in text and '### `reference:A`' in text
    assert text.count('](images/a.png)') == 1


def test_times_have_three_digits():
    times = [0.0012345, 0.012345, 0.12345, 1.2345]
    assert [milliseconds(time) for time in times] == ['1.23', '12.3', '123', '1234']
