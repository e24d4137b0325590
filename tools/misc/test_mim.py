"""Tries what mim's two clients do with this package, each way of installing it that can work.

Each client gets a throw-away environment that borrows torch and the OpenMMLab stack from the one
this script runs in; the clients themselves come from pip's index. The package is installed from a
copy of the repository's files. Prints a table and fails where something does not work.
"""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mmvit_ext.datasets import DigitSettings, make_digits

ROOT = Path(__file__).resolve().parents[2]
# what an environment has to have of its own
OWN = ('pip', 'setuptools', 'pkg_resources', '_distutils_hack', 'distutils', 'wheel', 'mmvit_ext')
OWN += ('__editable__', '__pycache__', 'mim', 'openmim', 'onedl_mim')
CONFIG = 'shiftvit-nano_digits-cls'
PUBLISHED = 'shiftvit-t_8xb128_in1k'
WEIGHTS = 'shiftvit_tiny_r2.pth'
SHORT = ['--cfg-options', 'train_cfg.max_epochs=1', 'train_cfg.val_interval=1']


@dataclass(frozen=True)
class Case:
    """A client and a way of installing the package.

    Attributes:
        client: The client's requirement.
        base: What is installed before it.
        install: What pip is told to install, in the copy of the repository.
        newest: Newest Python that the client starts on.
    """

    client: str
    base: tuple[str, ...]
    install: tuple[str, ...]
    newest: tuple[int, int] = (3, 99)

    def __str__(self) -> str:
        return f'{self.client}, pip install {" ".join(self.install)}'


OLD = ('pip==23.2.1', 'setuptools==60.2.0', 'wheel')
CASES = (
    Case('openmim==0.3.9', OLD, ('-e', '.'), (3, 11)),
    Case('openmim==0.3.9', OLD, ('.',), (3, 11)),
    Case('onedl-mim==0.5.1', ('setuptools>=80', 'wheel'), ('-e', '.')),
)


def run(command: list[object], cwd: Path, log: Path) -> tuple[bool, str]:
    """Runs a command, adding what it says to a log; tells whether it succeeded, and what it said.

    Some clients print an error and exit with 0.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900
    )
    with log.open('a') as sink:
        sink.write(f'$ {" ".join(words)}\n{done.stdout}\n')
    return done.returncode == 0 and 'Traceback' not in done.stdout, done.stdout


def lend(folder: Path) -> Path:
    """A folder of links to the packages of this environment, but for those in ``OWN``."""
    folder.mkdir()
    for entry in Path(sysconfig.get_paths()['purelib']).iterdir():
        if not entry.name.startswith(OWN):
            (folder / entry.name).symlink_to(entry)
    return folder


def make_environment(case: Case, folder: Path, lent: Path, log: Path) -> bool:
    """Makes a case's environment and installs client and package."""
    run([sys.executable, '-m', 'venv', folder / 'env'], folder, log)
    python = folder / 'env' / 'bin' / 'python'
    pip = [python, '-m', 'pip', 'install', '--quiet']
    copy_repository(folder / 'repo')
    if not (run([*pip, *case.base], folder, log)[0] and run([*pip, case.client], folder, log)[0]):
        return False
    (site,) = (folder / 'env' / 'lib').glob('python*/site-packages')
    # behind its own packages, so that what the client needs comes first
    (site / 'lent.pth').write_text(f'{lent}\n')
    return run([*pip, '--no-deps', *case.install], folder / 'repo', log)[0]


def copy_repository(target: Path) -> None:
    """Copies the files that git knows or would add."""
    listed = subprocess.run(
        ['git', 'ls-files', '--cached', '--others', '--exclude-standard', '-z'],
        cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split('\0')):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def attempts(case: Case, folder: Path, data: Path, log: Path) -> Iterator[tuple[str, bool]]:
    """Tries the commands; gives the name of each and whether it did what it should."""
    away, work = folder / 'away', folder / 'work'
    away.mkdir()
    mim = [folder / 'env' / 'bin' / 'mim']
    ok, said = run([*mim, 'search', 'mmvit_ext', '--config', PUBLISHED], away, log)
    yield 'search', ok and PUBLISHED in said

    options = ['--data-root', data, '--work-dir', work]
    train = [*mim, 'train', 'mmvit_ext', f'{CONFIG}.py', '--gpus', 0, *options, *SHORT]
    checkpoint = work / 'epoch_1.pth'
    yield 'train by name', run(train, away, log)[0] and checkpoint.is_file()

    path = folder / 'repo' / 'configs' / 'demo' / f'{CONFIG}.py'
    test = [*mim, 'test', 'mmvit_ext', path, '--checkpoint', checkpoint, '--gpus', 0, *options]
    ok, said = run(test, away, log)
    yield 'test by path', ok and 'accuracy/top1' in said

    pictures, drawn = next((data / 'val').iterdir()), away / 'drawn'
    words = ['predict', path, checkpoint, pictures, '--limit', 1, '--out', drawn]
    yield 'run', run([*mim, 'run', 'mmvit_ext', *words], away, log)[0] and drawn.is_dir()

    # mim keeps a file that is there, so that nothing is fetched
    (away / WEIGHTS).write_bytes(b'')
    fetch = [*mim, 'download', 'mmvit_ext', '--config', PUBLISHED, '--dest', away]
    yield 'download', run(fetch, away, log)[0] and (away / f'{PUBLISHED}.py').is_file()


def main() -> int:
    """Tries all cases; gives the number of failures."""
    scratch = Path(tempfile.mkdtemp(prefix='mim-'))
    log, lent = scratch / 'log.txt', lend(scratch / 'lent')
    make_digits(scratch / 'data', DigitSettings('imagenet', 40, 10, height=32, width=32))
    failures = 0
    for i, case in enumerate(CASES):
        if sys.version_info[:2] > case.newest:
            print(f'{case}: does not start on this Python, left out')
            continue
        folder = scratch / str(i)
        folder.mkdir()
        if not make_environment(case, folder, lent, log):
            print(f'{case}: cannot be installed')
            failures += 1
            continue
        for name, worked in attempts(case, folder, scratch / 'data', log):
            print(f'{case}: {name}: {"works" if worked else "FAILS"}', flush=True)
            failures += not worked
    if failures:
        print(f'{failures} failures; all that was said: {log}')
    else:
        shutil.rmtree(scratch)
    return failures


if __name__ == '__main__':
    sys.exit(main() > 0)
