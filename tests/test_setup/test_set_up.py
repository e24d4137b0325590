"""Checks tools/set_up.py without installing anything: canned output takes the place of pip."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPT = Path(__file__).parents[2] / 'tools' / 'set_up.py'

UNREACHABLE = """\
WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(': Failed to \
establish a new connection: [Errno 111] Connection refused')': /simple/torch/
ERROR: Could not find a version that satisfies the requirement torch>=2.10 (from versions: none)
ERROR: No matching distribution found for torch>=2.10
"""
NO_NAMES = """\
WARNING: Retrying (Retry(total=0)) after connection broken by 'NameResolutionError(...)': \
Failed to resolve (Temporary failure in name resolution)': /simple/torch/
"""
NOT_OFFERED = """\
ERROR: Could not find a version that satisfies the requirement torch>=9 (from versions: 2.14.1)
ERROR: No matching distribution found for torch>=9
"""
NO_INDEX = """\
ERROR: Cannot install torch>=2.10 because these package versions have conflicting dependencies.
    The user requested (constraint) torch==2.14.1
ERROR: ResolutionImpossible: for help visit the documentation
"""
FULL = """\
Installing collected packages: torch
ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device
"""


@pytest.fixture
def tool():
    """Loads a fresh copy of the script, which is no package module."""
    spec = importlib.util.spec_from_file_location('set_up_under_test', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pip(tool, monkeypatch, tmp_path):
    """Gives a stand-in for pip and venv, an empty place for the venv, and a small repository."""
    repository = tmp_path / 'repository'
    (repository / 'requirements').mkdir(parents=True)
    (repository / 'mmvit_ext').mkdir()
    for name in ('setup.py', 'mmvit_ext/version.py', 'requirements/onedl.txt'):
        (repository / name).write_text('')
    state = SimpleNamespace(
        commands=[], outcomes={}, root=repository, venv=tmp_path / 'a place' / 'venv'
    )

    def run_logged(command, log):
        state.commands.append(' '.join(command[command.index('install') + 1 :]))
        return state.outcomes.get(len(state.commands), (0, 'Successfully installed'))

    def call(command):
        venv = Path(command[-1])
        (venv / 'bin').mkdir(parents=True)
        (venv / 'pyvenv.cfg').touch()
        (venv / 'bin' / 'python').symlink_to(sys.executable)
        return 0

    monkeypatch.setattr(tool, 'ROOT', str(repository))
    monkeypatch.setattr(tool, 'run_logged', run_logged)
    monkeypatch.setattr(tool.subprocess, 'call', call)
    monkeypatch.setattr(tool, 'check_disk', lambda venv: None)
    monkeypatch.setattr(tool, 'mend_opencv', lambda venv: None)
    monkeypatch.setattr(tool, 'OLDEST', sys.version_info[:2])
    return state


def set_up(tool, pip, purpose='demo'):
    """Runs the script's main function on the stand-ins."""
    return tool.main(['--venv', str(pip.venv), '--for', purpose])


def test_old_python_can_parse_it():
    ast.parse(SCRIPT.read_text(), feature_version=(3, 6))


@pytest.mark.parametrize('version', [(3, 6, 15), (3, 9, 18)])
def test_old_python_is_refused(tool, version):
    with pytest.raises(tool.SetUpError, match=r'^Python 3\.\d is too old, 3\.10 to 3\.12.*PYTHON='):
        tool.check_python(version)


def test_old_python_ends_with_status_2(tool, monkeypatch, capsys):
    monkeypatch.setattr(tool, 'OLDEST', (99, 0))
    assert tool.main(['--for', 'demo']) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_tried_pythons_pass_silently_and_newer_ones_with_a_warning(tool, capsys):
    for minor in (10, 11, 12):
        tool.check_python((3, minor, 1))
    assert capsys.readouterr().out == ''
    tool.check_python((3, 13, 0))
    assert capsys.readouterr().out.startswith('warning: Python 3.13')


def test_full_disk_is_told_with_place_free_and_needed(tool, monkeypatch, tmp_path):
    asked = []

    def disk_usage(place):
        asked.append(place)
        return SimpleNamespace(free=3 * 2**30)

    monkeypatch.setattr(tool.shutil, 'disk_usage', disk_usage)
    with pytest.raises(tool.SetUpError, match='3.0 GB free at .*about 8 GB needed.*VENV='):
        tool.check_disk(str(tmp_path / 'not' / 'there'))
    assert asked == [str(tmp_path)]

    library = tmp_path / 'lib' / f'python3.{sys.version_info[1]}' / 'site-packages'
    for name in ('torch', 'torchvision'):
        (library / name).mkdir(parents=True)
    tool.check_disk(str(tmp_path))


@pytest.mark.parametrize(
    ('output', 'told'),
    [
        (UNREACHABLE, 'cannot reach its package index, check'),
        (NO_NAMES, 'cannot reach its package index, check'),
        (NOT_OFFERED, 'finds no fitting release'),
        (NO_INDEX, 'finds no fitting release'),
        (FULL, 'disk is full'),
        (UNREACHABLE + 'Building wheel\n' * 80 + 'error: g++ failed', 'could not install it'),
    ],
)
def test_failure_of_pip_is_told_in_one_line(tool, pip, capsys, output, told):
    pip.outcomes[2] = (1, output)
    assert set_up(tool, pip) == 1
    shown = capsys.readouterr().err.splitlines()
    assert [line for line in shown if line.startswith('error:')] == shown[-1:]
    assert told in shown[-1] and 'OpenMMLab stack' in shown[-1] and 'set_up.log' in shown[-1]
    assert shown[-2] == '  | ' + output.splitlines()[-1]


def test_second_call_does_nothing(tool, pip, capsys):
    assert set_up(tool, pip) == 0
    assert pip.commands == [
        '-r requirements/runtime.txt',
        '-r requirements/onedl.txt -r requirements/demo.txt',
        '-e .[onedl,demo]',
    ]
    capsys.readouterr()
    assert set_up(tool, pip) == 0
    assert len(pip.commands) == 3
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_tests_after_demo_add_to_it_and_serve_the_demo_too(tool, pip):
    for purpose, commands in [('demo', 3), ('test', 6), ('test', 6), ('demo', 6)]:
        assert set_up(tool, pip, purpose) == 0
        assert len(pip.commands) == commands
    assert pip.commands[-1] == '-e .[onedl,demo,tests]'


@pytest.mark.parametrize('works', [True, False])
def test_opencv_is_mended_only_where_it_fails(tool, monkeypatch, works):
    answers = {'import cv2': '' if works else None}
    monkeypatch.setattr(tool, 'ask', lambda python, code: answers.get(code, '4.12.0.88'))
    installed = []
    monkeypatch.setattr(tool, 'run_pip', lambda venv, name, arguments: installed.append(arguments))
    tool.mend_opencv('venv')
    wanted = ['--force-reinstall', '--no-deps', 'opencv-python-headless==4.12.0.88']
    assert installed == ([] if works else [wanted])


def test_changed_requirements_are_installed(tool, pip):
    set_up(tool, pip)
    (pip.root / 'requirements' / 'onedl.txt').write_text('timm')
    set_up(tool, pip)
    assert len(pip.commands) == 6


def test_changed_constraints_are_installed(tool, pip, tmp_path):
    pins = tmp_path / 'pins.txt'
    for content, commands in [('torch==2.10.0', 3), ('torch==2.10.0', 3), ('torch==2.14.1', 6)]:
        pins.write_text(content)
        arguments = ['--venv', str(pip.venv), '--for', 'demo', '--constraints', str(pins)]
        assert tool.main(arguments) == 0
        assert len(pip.commands) == commands
    assert pip.commands[0] == f'-r requirements/runtime.txt -c {pins}'


def test_interrupted_set_up_goes_on(tool, pip):
    set_up(tool, pip)
    (pip.root / 'setup.py').write_text('# changed')
    pip.outcomes[5] = (1, 'killed')
    assert set_up(tool, pip) == 1
    (pip.root / 'setup.py').write_text('')
    assert set_up(tool, pip) == 0
    assert len(pip.commands) == 8, 'the half-made state must not pass for the earlier finished one'


def test_log_keeps_each_output_and_run_returns_its_own(tool, tmp_path):
    log = str(tmp_path / 'log')
    assert tool.run_logged([sys.executable, '-c', 'print("one")'], log) == (0, 'one\n')
    assert tool.run_logged([sys.executable, '-c', 'raise SystemExit("two")'], log) == (1, 'two\n')
    assert Path(log).read_text() == 'one\ntwo\n'


def test_folder_of_something_else_is_left_alone(tool, pip, capsys):
    pip.venv.mkdir(parents=True)
    (pip.venv / 'thesis.txt').write_text('mine')
    assert set_up(tool, pip) == 1
    assert 'no virtual environment' in capsys.readouterr().err
    assert os.listdir(pip.venv) == ['thesis.txt']


def test_venv_whose_python_is_gone(tool, pip, capsys):
    set_up(tool, pip)
    (pip.venv / 'bin' / 'python').unlink()
    (pip.venv / 'bin' / 'python').symlink_to('/nowhere/python')
    assert set_up(tool, pip) == 1
    assert 'no longer runs: delete it, or' in capsys.readouterr().err


def test_venv_of_another_python(tool, pip, monkeypatch, capsys):
    set_up(tool, pip)
    monkeypatch.setattr(tool, 'ask', lambda python, code: '3.99')
    assert set_up(tool, pip) == 1
    assert 'holds Python 3.99' in capsys.readouterr().err


def test_python_without_venv(tool, pip, monkeypatch, capsys):
    monkeypatch.setattr(tool.importlib.util, 'find_spec', lambda name: None)
    assert set_up(tool, pip) == 1
    assert 'lacks the module venv' in capsys.readouterr().err


def test_missing_constraints_file(tool, pip, capsys):
    assert tool.main(['--venv', str(pip.venv), '--for', 'demo', '--constraints', '/no/pins']) == 1
    assert capsys.readouterr().err == 'error: no constraints file /no/pins\n'


def test_runs_as_a_script():
    done = subprocess.run([sys.executable, str(SCRIPT), '--help'], capture_output=True, text=True)
    assert done.returncode == 0 and '--constraints' in done.stdout
