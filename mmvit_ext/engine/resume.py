"""Which checkpoint an interrupted run goes on from."""

import logging
import os
import pickle
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from mmengine.logging import print_log

from mmvit_ext.errors import UsageError

from .checkpoint_file import read_checkpoint

# A step number in a checkpoint's name: epoch_12.pth, iter_16000.pth, or as filename_tmpl has it.
NUMBERED = re.compile(r'(.*?)(\d+)(\D*)')


def latest_checkpoint(work_dir: str | os.PathLike) -> str | None:
    """The newest checkpoint of a run that can be read.

    That is the one named in ``last_checkpoint``, or the newest readable one before it. Best
    checkpoints have no optimizer's state, and files that were being written have another ending:
    neither is taken. Folders (of sharded checkpoints) and addresses are left to mmengine.

    Args:
        work_dir: The run's folder.

    Returns:
        The checkpoint's path; None if the run has saved none yet.

    Raises:
        UsageError: If there are checkpoints, and none can be read.
    """
    pointer = Path(work_dir) / 'last_checkpoint'
    if not pointer.is_file():
        return None
    named = pointer.read_text().strip()
    if '://' in named or (named and Path(named).is_dir()):
        return named
    problems = [] if named else [f'{pointer}: empty']
    for path in _candidates(Path(work_dir), named):
        problem = _problem(path)
        if problem is None:
            if problems:
                print_log(
                    f'--resume: {"; ".join(problems)}; taking {path} instead',
                    'current',
                    logging.WARNING,
                )
            return str(path)
        problems.append(problem)
    raise UsageError(
        f'--resume: no checkpoint of {work_dir} can be read ({"; ".join(problems)}); name another '
        'one with --resume=CHECKPOINT, or leave --resume out to start anew'
    )


def recorded_seed(path: str) -> int | None:
    """The seed of the run that saved a checkpoint.

    Args:
        path: The checkpoint.

    Returns:
        The seed; None if the file has none or cannot be read, which the runner will report.
    """
    try:
        seed = (read_checkpoint(path).get('meta') or {}).get('seed')
    except (OSError, ValueError):
        return None
    return None if seed is None else int(seed)


def _candidates(work_dir: Path, named: str) -> Iterator[Path]:
    """The checkpoint that a run named as its last, and the earlier ones, newest first."""
    last = Path(named)
    if named:
        yield last
    # a run that was moved keeps its names, not its folder
    folder = last.parent if named and last.parent.is_dir() else work_dir
    wanted = NUMBERED.fullmatch(last.name)
    prefixes, ending = ({wanted[1]}, wanted[3]) if wanted else ({'epoch_', 'iter_'}, '.pth')
    earlier = []
    for path in folder.iterdir():
        match = NUMBERED.fullmatch(path.name)
        fits = match and path != last and match[1] in prefixes and match[3] == ending
        if fits and (wanted is None or int(match[2]) <= int(wanted[2])):
            earlier.append((int(match[2]), path))
    yield from (path for _, path in sorted(earlier, reverse=True))


def _problem(path: Path) -> str | None:
    """Why a run cannot go on from a file."""
    try:
        content = read_checkpoint(path)
    except (OSError, ValueError) as error:
        # complete, but holding what torch will not unpickle safely: mmengine decides about that
        refused = isinstance(error.__cause__, pickle.UnpicklingError)
        return None if refused and zipfile.is_zipfile(path) else str(error)
    missing = [key for key in ('meta', 'message_hub', 'state_dict') if key not in content]
    return f'{path}: no checkpoint of a run (without {", ".join(missing)})' if missing else None
