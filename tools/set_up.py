"""Makes the virtual environment that ``make demo`` and ``make test`` run in.

Usage: ``python tools/set_up.py --venv .venv --for demo``. Only the standard library is used, and
the file parses on Python 3.6, so that a Python that is too old gets a sentence, not a SyntaxError.
pip's own settings (files and ``PIP_*`` variables) apply as they are.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST, NEWEST = (3, 10), (3, 12)
# Requirement files beside the stack's, which are also the names of the package's extras.
PURPOSES = {'demo': ('demo',), 'test': ('demo', 'tests')}
GIB = 2**30
FRESH_GIB = 8  # torch with its CUDA libraries takes most of it, also where there is no GPU
MORE_GIB = 1
SHOWN_LINES = 12
READ_LINES = 60

FULL_MARKS = ('No space left on device', '[Errno 28]', 'Disk quota exceeded')
OFFLINE_MARKS = (
    'NewConnectionError',
    'ConnectTimeoutError',
    'ReadTimeoutError',
    'Read timed out',
    'Connection refused',
    'Connection reset',
    'Connection aborted',
    'Max retries exceeded',
    'Network is unreachable',
    'name resolution',
    'Name or service not known',
    'nodename nor servname provided',
    'ProxyError',
    'SSLError',
)
# The last one is what pip says where it finds nothing at all that meets a constraint.
ABSENT_MARKS = (
    'Could not find a version',
    'No matching distribution found',
    'ResolutionImpossible',
)


class SetUpError(Exception):
    """A problem told to the user in one line, below what pip said where that helps."""

    def __init__(self, message, status=1, said=()):
        """Keeps the exit status and pip's last lines beside the message."""
        super().__init__(message)
        self.status = status
        self.said = said


def check_python(version):
    """Refuses a Python that is too old and warns about one that nobody has tried."""
    found = '.'.join(str(part) for part in version[:2])
    wanted = '{}.{} to {}.{}'.format(*(OLDEST + NEWEST))
    if tuple(version[:2]) < OLDEST:
        raise SetUpError(
            f'Python {found} is too old, {wanted} is needed: name one, as in PYTHON=python3.11',
            status=2,
        )
    if tuple(version[:2]) > NEWEST:
        print(
            f'warning: Python {found} is newer than those tried ({wanted}), going on all the same'
        )


def check_disk(venv):
    """Refuses to start what the disk cannot hold."""
    needed = MORE_GIB if holds_torch(venv) else FRESH_GIB
    place = existing_parent(venv)
    free = shutil.disk_usage(place).free / GIB
    if free < needed:
        raise SetUpError(
            f'only {free:.1f} GB free at {place}, about {needed} GB needed: '
            'make room, or choose another disk with VENV=/other/place'
        )


def existing_parent(path):
    """Gives the path itself or the nearest folder above it that exists."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def holds_torch(venv):
    """Tells whether the big download is behind us."""
    library = os.path.join(venv, 'lib', 'python{}.{}'.format(*sys.version_info), 'site-packages')
    return all(os.path.isdir(os.path.join(library, name)) for name in ('torch', 'torchvision'))


def interpreter(venv):
    """Gives the path of the environment's Python."""
    return os.path.join(venv, 'bin', 'python')


def check_venv(venv):
    """Tells whether a usable environment is there; an unusable one is the user's to delete."""
    if not os.path.lexists(venv) or (os.path.isdir(venv) and not os.listdir(venv)):
        return False
    advice = 'delete it, or choose another place with VENV='
    if not os.path.isfile(os.path.join(venv, 'pyvenv.cfg')):
        raise SetUpError(
            f'{venv} exists and is no virtual environment: choose another place with VENV='
        )
    python = interpreter(venv)
    if os.path.lexists(python):
        found = ask(python, 'import sys; print("{}.{}".format(*sys.version_info))')
        if found is None:
            raise SetUpError(f'the Python that {venv} was made with no longer runs: {advice}')
        wanted = '{}.{}'.format(*sys.version_info)
        if found != wanted:
            raise SetUpError(
                f'{venv} holds Python {found}, this is Python {wanted}: {advice}, or set PYTHON='
            )
    # Without pip, its making was interrupted: made once more, it is completed.
    return ask(python, 'import pip; print(pip.__version__)') is not None


def ask(python, code):
    """Gives what a line of Python prints in another interpreter, None where that fails."""
    try:
        output = subprocess.check_output([python, '-c', code], stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None
    return output.decode().strip()


def make_venv(venv):
    """Makes the virtual environment, or completes a half-made one."""
    for module in ('venv', 'ensurepip'):
        if importlib.util.find_spec(module) is None:
            raise SetUpError(
                f'this Python ({sys.executable}) lacks the module {module}: install it '
                '(python3-venv on Debian and Ubuntu), or name another Python with PYTHON='
            )
    with timed(f'virtual environment in {venv}'):
        if subprocess.call([sys.executable, '-m', 'venv', venv]):
            raise SetUpError(f'{venv} cannot be made a virtual environment, see above')


def install_steps(purpose):
    """Gives what pip installs, in order: the name of each step and pip's arguments."""
    extras = PURPOSES[purpose]
    files = [os.path.join('requirements', name + '.txt') for name in ('onedl',) + extras]
    return [
        ('torch and torchvision', ['-r', os.path.join('requirements', 'runtime.txt')]),
        (
            f'OpenMMLab stack and {purpose} packages',
            [word for file in files for word in ('-r', file)],
        ),
        ('mmvit_ext, editable', ['-e', '.[{}]'.format(','.join(('onedl',) + extras))]),
    ]


def install(venv, purpose, constraints):
    """Runs pip step by step, its output going to ``set_up.log`` in the environment."""
    open(log_path(venv), 'wb').close()
    for name, arguments in install_steps(purpose):
        run_pip(venv, name, arguments + (['-c', constraints] if constraints else []))
    mend_opencv(venv)


def mend_opencv(venv):
    """Makes OpenCV importable on a machine without display libraries.

    The stack asks for two builds of OpenCV that share one folder. The one that needs a display ends
    up on top, so there the other is put back over it.
    """
    python = interpreter(venv)
    if ask(python, 'import cv2') is None:
        name = 'opencv-python-headless'
        version = ask(python, f'from importlib import metadata; print(metadata.version("{name}"))')
        if version:
            arguments = ['--force-reinstall', '--no-deps', f'{name}=={version}']
            run_pip(venv, 'OpenCV for a machine without display libraries', arguments)


def run_pip(venv, name, arguments):
    """Installs with pip as one timed step."""
    command = [interpreter(venv), '-m', 'pip', 'install'] + arguments
    with timed(name):
        status, output = run_logged(command, log_path(venv))
        if status:
            raise SetUpError(
                f'{name}: {explain(output)} (all that pip said: {log_path(venv)})',
                said=output.splitlines()[-SHOWN_LINES:],
            )


def log_path(venv):
    """Names the file that keeps pip's output."""
    return os.path.join(venv, 'set_up.log')


def run_logged(command, log):
    """Runs a command in the repository; gives its exit status and its output, also logged."""
    with open(log, 'ab') as sink:
        start = sink.tell()
        status = subprocess.call(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
        )
    with open(log, 'rb') as source:
        source.seek(start)
        return status, source.read().decode('utf-8', 'replace')


def explain(output):
    """Tells why pip failed, judged by the end of its output: it gets over some earlier errors."""
    end = '\n'.join(output.splitlines()[-READ_LINES:])
    if any(mark in end for mark in FULL_MARKS):
        return (
            "the disk is full (pip's cache and TMPDIR need room too), "
            'make room or choose another place with VENV='
        )
    if any(mark in end for mark in OFFLINE_MARKS):
        return 'pip cannot reach its package index, check the network and `pip config list`'
    if any(mark in end for mark in ABSENT_MARKS):
        return (
            'pip cannot reach its package index or finds no fitting release there, '
            'check `pip config list`'
        )
    return 'pip could not install it'


@contextlib.contextmanager
def timed(name):
    """Prints one line around what it holds: what is done, then how long it took."""
    print(name, '...', end=' ', flush=True)
    start = time.time()
    try:
        yield
    except BaseException:
        print('failed', flush=True)
        raise
    print(f'{time.time() - start:.0f} s', flush=True)


def fingerprint(purpose, constraints):
    """Hashes all that decides what is installed, and from where."""
    folder = os.path.join(ROOT, 'requirements')
    files = [
        os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith('.txt')
    ]
    files += [os.path.join(ROOT, 'setup.py'), os.path.join(ROOT, 'mmvit_ext', 'version.py')]
    files += [constraints] if constraints else []
    digest = hashlib.sha256(repr((purpose, ROOT, sys.version_info[:2], files)).encode())
    for path in files:
        with open(path, 'rb') as source:
            digest.update(hashlib.sha256(source.read()).digest())
    return digest.hexdigest()


def stamp_path(venv, purpose):
    """Names the file that holds the fingerprint of a finished set-up."""
    return os.path.join(venv, f'set_up-{purpose}.stamp')


def is_done(venv, purpose, constraints):
    """Tells whether this purpose, or one that includes it, is set up as the files now ask."""
    for other, extras in PURPOSES.items():
        path = stamp_path(venv, other)
        if set(extras) >= set(PURPOSES[purpose]) and os.path.isfile(path):
            with open(path) as source:
                if source.read() == fingerprint(other, constraints):
                    return True
    return False


def set_up(venv, purpose, constraints):
    """Brings the environment to what the purpose needs; does nothing where it is there already."""
    check_python(sys.version_info)
    if constraints and not os.path.isfile(constraints):
        raise SetUpError(f'no constraints file {constraints}')
    usable = check_venv(venv)
    if usable and is_done(venv, purpose, constraints):
        print(f'{venv} is set up for the {purpose} already')
        return
    check_disk(venv)
    if not usable:
        make_venv(venv)
    # A failed run may leave a mixture that no stamp describes.
    for other in PURPOSES:
        if os.path.isfile(stamp_path(venv, other)):
            os.remove(stamp_path(venv, other))
    install(venv, purpose, constraints)
    with open(stamp_path(venv, purpose), 'w') as sink:
        sink.write(fingerprint(purpose, constraints))


def main(arguments=None):
    """Parses the command line, sets up, and turns problems into one line and an exit status."""
    parser = argparse.ArgumentParser(
        description='Make the virtual environment for the demo or the tests.'
    )
    parser.add_argument('--venv', default='.venv', help='where the virtual environment is or goes')
    parser.add_argument(
        '--for', dest='purpose', choices=sorted(PURPOSES), required=True, help='what it is for'
    )
    parser.add_argument(
        '--constraints', default='', help='pip constraints file with the versions to install'
    )
    args = parser.parse_args(arguments)
    constraints = args.constraints and os.path.abspath(args.constraints)
    try:
        set_up(os.path.abspath(args.venv), args.purpose, constraints)
    except SetUpError as problem:
        for line in problem.said:
            print('  |', line, file=sys.stderr)
        print('error:', problem, file=sys.stderr)
        return problem.status
    except KeyboardInterrupt:
        print('interrupted: the same command goes on from here', file=sys.stderr)
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main())
