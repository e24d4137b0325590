"""Checks setup.py, what it builds, the requirement files and the CI entry."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]

# Takes the place of setuptools.setup, so that its arguments can be read without a build.
READ_SETUP = """
import json, runpy, sys, setuptools
given = {}
setuptools.setup = lambda **arguments: given.update(arguments)
runpy.run_path('setup.py')
del given['cmdclass']
heavy = {'torch', 'numpy', 'mmengine', 'mmvit_ext'} & set(sys.modules)
json.dump({**given, 'heavy': sorted(heavy)}, sys.stdout)
"""


def run_python(*arguments: str) -> str:
    """Runs Python in the repository root and gives what it prints."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.fixture(scope='module')
def metadata() -> dict:
    """What setup.py passes to setuptools."""
    return json.loads(run_python('-c', READ_SETUP))


def names(requirements: list[str]) -> set[str]:
    """The distribution names of requirement lines; fails on a line that is none."""
    return {Requirement(line).name for line in requirements}


def test_metadata(metadata):
    assert metadata['name'] == 'mmvit_ext'
    assert f"__version__ = '{metadata['version']}'" in (ROOT / 'mmvit_ext/version.py').read_text()
    assert metadata['license'] == 'Apache-2.0'
    assert metadata['python_requires'] == '>=3.10'
    assert names(metadata['install_requires']) == {'torch', 'torchvision'}
    assert metadata['heavy'] == []
    assert {name.split('.')[0] for name in metadata['packages']} == {'mmvit_ext'}


def test_every_package_folder_is_packaged(metadata):
    folders = {path.parent for path in (ROOT / 'mmvit_ext').rglob('*.py')}
    inside = {folder for folder in folders if '.mim' not in folder.parts}
    assert {'.'.join(path.relative_to(ROOT).parts) for path in inside} == set(metadata['packages'])


def test_extras_never_hold_both_stacks(metadata):
    for extra, requirements in metadata['extras_require'].items():
        found = names(requirements)
        forks = any(name.startswith('onedl-') for name in found)
        assert not (forks and 'mmengine' in found), extra


def test_extras_of_the_mim_clients_bring_a_whole_stack(metadata):
    extras = metadata['extras_require']
    assert set(extras) == {'onedl', 'openmmlab', 'demo', 'tests', 'mim', 'mminstall'}
    assert extras['mim'] == extras['openmmlab'] and extras['mminstall'] == extras['onedl']
    for part in ('mmengine', 'mmcv', 'mmpretrain'):
        assert part in names(extras['mim']) and f'onedl-{part}' in names(extras['mminstall'])


def test_each_requirement_file_says_what_it_is_for():
    for path in (ROOT / 'requirements').glob('*.txt'):
        assert path.read_text().startswith('# '), path.name


def test_constraints_pin_what_is_required(metadata):
    lines = (ROOT / 'requirements' / 'constraints.txt').read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith('#')]
    assert all(re.fullmatch(r'==[^,*]+', str(pin.specifier)) for pin in pins)
    by_name = {pin.name.lower().replace('_', '-'): pin for pin in pins}
    assert len(by_name) == len(pins)

    extras = metadata['extras_require']
    wanted = metadata['install_requires'] + extras['onedl'] + extras['demo'] + extras['tests']
    for requirement in map(Requirement, wanted):
        pin = by_name[requirement.name]
        version = str(pin.specifier).removeprefix('==')
        assert requirement.specifier.contains(version), f'{requirement} leaves out the pin {pin}'
    assert by_name['torch'].marker is None and by_name['torchvision'].marker is None
    for name, pin in by_name.items():
        if name.startswith('nvidia-') or name == 'triton':
            assert 'sys_platform == "linux"' in str(pin.marker), name


def test_build_holds_what_mim_looks_for(tmp_path):
    run_python('setup.py', '--quiet', 'build', '--build-base', str(tmp_path))
    package = tmp_path / 'lib' / 'mmvit_ext'
    assert (package / 'version.py').is_file()
    assert (package / '.mim' / 'tools' / 'set_up.py').is_file()
    families = yaml.safe_load((package / '.mim' / 'model-index.yml').read_text())['Import']
    shipped = {path.relative_to(ROOT).as_posix() for path in ROOT.glob('configs/*/metafile.yml')}
    assert set(families) == shipped
    assert all((package / '.mim' / family).is_file() for family in families)
    assert not list(package.rglob('__pycache__'))


def test_ci_runs_the_command_that_the_readme_names():
    lines = (ROOT / '.ci' / 'run').read_text().splitlines()
    commands = [line for line in lines if not line.startswith(('#', 'set ', 'cd '))]
    assert commands == ['make test']
    fenced = re.findall(r'^```\w*\n(.*?)^```', (ROOT / 'README.md').read_text(), re.M | re.S)
    assert any('make test' in block.splitlines() for block in fenced)
