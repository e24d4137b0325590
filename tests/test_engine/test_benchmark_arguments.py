"""The benchmark tool's arguments, and what it writes."""

import json

import pytest

from mmvit_ext.analysis.benchmark import Case, Result, Row, Run, Settings, to_json
from mmvit_ext.analysis.benchmark.memory import Memory
from mmvit_ext.engine import benchmark as module
from mmvit_ext.engine.benchmark import benchmark, benchmark_cases, benchmark_settings
from mmvit_ext.engine.cli import benchmark_parser
from mmvit_ext.errors import UsageError


def parse(*args):
    return benchmark_parser().parse_args(['--models', 'a:b', *map(str, args)])


def run_of(model):
    row = Row(model, 10, 20, 1, [0.1], Memory(10, 5))
    return Run({'CPU': model}, {}, [[Result(Case((1, 3, 8, 8)), 1, [0.1], [row])]])


def test_cases():
    assert benchmark_cases(parse()) == [Case((4, 3, 224, 224))]
    args = ['--shapes', '1x3x8x9', '--sizes', 8, '--mode', 'forward', 'train', '--dtype', 'float16']
    shapes = [(1, 3, 8, 9), (1, 3, 8, 8)]
    modes = ['forward', 'train']
    wanted = [Case(shape, mode, 'float16') for shape in shapes for mode in modes]
    assert benchmark_cases(parse(*args)) == wanted


def test_sizes_alone_are_all_there_is_and_doubles_run_once():
    args = parse('--sizes', 8, 16, 8, '--mode', 'train', 'train')
    assert benchmark_cases(args) == [Case((1, 3, side, side), 'train') for side in (8, 16)]


def test_settings():
    args = parse('--threads', 2, '--rounds', 3, '--compile')
    assert benchmark_settings(args) == Settings('cpu', 2, 3, True)


def test_groups_of_models():
    args = benchmark_parser().parse_args(['--models', 'a:b', 'c:d', '--models', 'e:f'])
    assert args.models == [['a:b', 'c:d'], ['e:f']]


@pytest.mark.parametrize(
    ('args', 'message'),
    [
        (['--shapes', '224'], '--shapes=224: '),
        (['--sizes', '8', '0'], '--sizes=0: '),
        (['--rounds', '0'], '--rounds=0: '),
        (['--threads', '-1'], '--threads=-1: '),
        (['--device', 'tpu'], '--device=tpu: give cpu or cuda'),
        (['--page', 'speed.txt'], '--page=speed.txt: .*ends in .md'),
        (['--add', 'nowhere.json'], '--add=nowhere.json: no such file'),
    ],
)
def test_wrong_arguments_are_told(args, message, monkeypatch):
    monkeypatch.setattr(module, 'measure', lambda *_: pytest.fail('too early'))
    with pytest.raises(UsageError, match=message):
        benchmark(parse(*args))


def test_nothing_to_do_is_told():
    with pytest.raises(UsageError, match='--models, or --add'):
        benchmark(benchmark_parser().parse_args([]))


def test_missing_gpu_is_told(monkeypatch):
    monkeypatch.setattr('torch.cuda.is_available', lambda: False)
    with pytest.raises(UsageError, match='--device=cuda: torch sees no GPU'):
        benchmark_settings(parse('--device', 'cuda'))


@pytest.mark.parametrize('text', ['', '[]', '{"runs": [{}]}', '{"runs": 1}'])
def test_other_json_is_told(tmp_path, text):
    path = tmp_path / 'other.json'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(UsageError, match='other.json: give the JSON that a benchmark wrote'):
        benchmark(parse('--add', path))


def test_folder_that_cannot_be_made_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(module, 'measure', lambda *_: pytest.fail('too early'))
    (tmp_path / 'file').touch()
    with pytest.raises(UsageError, match='cannot be made'):
        benchmark(parse('--out', tmp_path / 'file'))


def test_earlier_runs_go_first_on_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(module, 'measure', lambda *_: run_of('new:model'))
    earlier = tmp_path / 'earlier.json'
    earlier.write_text(json.dumps(to_json([run_of('old:model')])), encoding='utf-8')
    page = tmp_path / 'docs' / 'speed.md'
    benchmark(parse('--add', earlier, '--page', page))
    text = page.read_text(encoding='utf-8')
    assert text.index('## old:model') < text.index('## new:model')
    assert len(json.loads(page.with_suffix('.json').read_text())['runs']) == 2
    for i in (1, 2):
        assert f'](images/speed-{i}-ratios.png)' in text
        assert (tmp_path / 'docs' / 'images' / f'speed-{i}-ratios.png').is_file()
    # the page alone, anew
    again = tmp_path / 'again' / 'speed.md'
    args = ['--add', str(page.with_suffix('.json')), '--page', str(again)]
    benchmark(benchmark_parser().parse_args(args))
    assert again.read_text(encoding='utf-8') == text
