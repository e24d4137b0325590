"""Folder ownership and the command line tool."""

import json
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from mmvit_ext.datasets import DigitSettings, layouts, make_digits
from mmvit_ext.datasets.folders import remove_files

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / 'tools/dataset_converters/make_digits.py'
TINY = ['--train', '2', '--val', '1', '--size', '48']


@pytest.fixture(scope='module')
def main():
    """The entry point of the tool, run in this process."""
    spec = spec_from_file_location('make_digits_tool', SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob('*') if path.is_file()}


@pytest.mark.parametrize('layout', ['coco', 'ade', 'imagenet'])
def test_says_what_it_wrote_and_where(main, tmp_path, capsys, layout):
    out = tmp_path / 'deep' / 'set'
    assert main([str(out), '--layout', layout, *TINY]) == 0
    text = capsys.readouterr().out
    assert '2 training and 1 validation pictures of 48x48' in text
    assert layout in text
    assert str(out) in text
    assert text.rstrip().endswith(' s')


def test_size_takes_height_and_width(main, tmp_path):
    args = [str(tmp_path), '--layout', 'coco', '--train', '1', '--val', '1', '--size', '48', '80']
    assert main(args) == 0
    record = json.loads((tmp_path / 'annotations/instances_val2017.json').read_text())
    assert [record['images'][0][key] for key in ('height', 'width')] == [48, 80]


def test_second_run_does_nothing(main, tmp_path, capsys):
    args = [str(tmp_path), '--layout', 'imagenet', *TINY]
    main(args)
    before = {name: os.stat(tmp_path / name).st_mtime_ns for name in files(tmp_path)}
    assert main(args) == 0
    assert 'already holds' in capsys.readouterr().out
    assert {name: os.stat(tmp_path / name).st_mtime_ns for name in files(tmp_path)} == before


def test_force_writes_again_over_the_same_settings(main, tmp_path):
    args = [str(tmp_path), '--layout', 'imagenet', *TINY]
    main(args)
    victim = next(tmp_path.rglob('*.jpg'))
    victim.unlink()
    assert main([*args, '--force']) == 0
    assert victim.exists()


def test_refuses_a_folder_with_other_files_until_forced(main, tmp_path, capsys):
    (tmp_path / 'train2017').mkdir()
    notes = tmp_path / 'train2017' / 'notes.txt'
    notes.write_text('mine')
    args = [str(tmp_path), '--layout', 'coco', *TINY]
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert str(tmp_path) in error
    assert '--force' in error
    assert files(tmp_path) == {'train2017/notes.txt'}
    assert main([*args, '--force']) == 0
    assert notes.read_text() == 'mine'


def test_force_replaces_an_earlier_set_and_keeps_other_files(tmp_path):
    make_digits(tmp_path, DigitSettings('imagenet', train=5, val=2, height=48, width=48))
    (tmp_path / 'train' / 'digit_4' / 'mine.txt').write_text('mine')
    settings = DigitSettings('ade', train=1, val=1, height=48, width=48)
    with pytest.raises(FileExistsError, match='other settings'):
        make_digits(tmp_path, settings)
    make_digits(tmp_path, settings, force=True)
    expected = {*layouts.layout_files(settings), 'digits.json', 'train/digit_4/mine.txt'}
    assert files(tmp_path) == expected
    assert not (tmp_path / 'val' / 'digit_1').exists()


def test_a_run_cut_short_is_made_again(tmp_path, monkeypatch):
    settings = DigitSettings('imagenet', train=3, val=1, height=48, width=48)

    def fail(out, settings):
        (out / 'train').mkdir()
        raise OSError('disk full')

    with monkeypatch.context() as patch:
        patch.setitem(layouts._WRITERS, 'imagenet', fail)
        with pytest.raises(OSError, match='disk full'):
            make_digits(tmp_path, settings)
    assert make_digits(tmp_path, settings)
    assert not make_digits(tmp_path, settings)


@pytest.mark.parametrize('text', ['not json', '[]', '{}', '{"settings": {"layout": "voc"}}'])
def test_a_foreign_stamp_is_not_trusted(tmp_path, text):
    (tmp_path / 'digits.json').write_text(text)
    with pytest.raises(FileExistsError, match='no demo data set'):
        make_digits(tmp_path, DigitSettings('ade', train=1, val=1))


def test_a_file_in_place_of_the_folder(main, tmp_path, capsys):
    path = tmp_path / 'file'
    path.write_text('x')
    with pytest.raises(SystemExit) as stop:
        main([str(path), '--layout', 'ade', *TINY])
    assert stop.value.code == 2
    assert str(path) in capsys.readouterr().err
    assert path.read_text() == 'x'


def test_remove_files_stays_below_the_folder(tmp_path):
    (tmp_path / 'a' / 'b').mkdir(parents=True)
    (tmp_path / 'a' / 'b' / 'c.jpg').write_text('x')
    remove_files(tmp_path, ['a/b/c.jpg', 'a/missing.jpg'])
    assert tmp_path.is_dir()
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    'extra,words',
    [
        (['--size', '16'], ['height=16', '32']),
        (['--size', '64', '16'], ['width=16', '32']),
        (['--size', '5000'], ['height=5000', '4096']),
        (['--size', '64', '64', '3'], ['size=', 'height and width']),
        (['--train', '-3'], ['train=-3', '0 or more']),
        (['--val', '-1'], ['val=-1', '0 or more']),
        (['--seed', '-1'], ['seed=-1', '0 or more']),
        (['--train', 'many'], ['--train', 'many']),
        (['--layout', 'voc'], ["layout='voc'", 'coco, ade, imagenet']),
        (['--layout', 'ade', '--coco-names'], ['coco_names', 'layout']),
    ],
)
def test_a_bad_value_is_one_line_and_code_2(main, tmp_path, capsys, extra, words):
    out = tmp_path / 'set'
    with pytest.raises(SystemExit) as stop:
        main([str(out), '--layout', 'coco', *extra])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert len(error.strip().splitlines()) == 1
    assert all(word in error for word in words)
    assert not out.exists()


def test_missing_scikit_learn_touches_nothing(main, tmp_path, capsys, monkeypatch):
    layouts.load_pool.cache_clear()
    monkeypatch.setitem(sys.modules, 'sklearn.datasets', None)
    out = tmp_path / 'set'
    assert main([str(out), '--layout', 'coco', *TINY]) == 1
    assert 'pip install "mmvit_ext[demo]"' in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.tools
def test_script_runs_by_itself(tmp_path):
    environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
    command = [sys.executable, str(SCRIPT), str(tmp_path / 'set'), '--layout', 'coco', *TINY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'wrote 2 training and 1 validation' in done.stdout
