"""Peak memory of one model in one case, asked of a process of its own."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

from .case import Case

# Makes malloc give freed tensors back at once: the peak is then that of what lives, in whatever
# order it came and went.
ENVIRONMENT = {'MALLOC_MMAP_THRESHOLD_': '131072'}

MIB = 2**20


@dataclasses.dataclass(frozen=True)
class Memory:
    """Peak memory, in bytes: resident size on a CPU, what torch has allocated on a GPU.

    Attributes:
        peak: Most that the process held: on a CPU with all its libraries.
        growth: By how much that is more than before the step, when the model and its input were in
            place; None where the system does not tell.
    """

    peak: int
    growth: int | None


def memory_of(
    model: str, case: Case, device: str, threads: int, compiled: bool
) -> tuple[Memory | None, str | None]:
    """Measures one step of a model, its first, in a new process.

    Args:
        model: The model's name, see :func:`parse_spec`.
        case: How it runs.
        device: Where it runs.
        threads: Threads of the CPU.
        compiled: Whether torch compiles it; it then runs once before what is measured.

    Returns:
        The peak, and None; or None, and why the model could not run.
    """
    task = {
        'model': model,
        'case': dataclasses.asdict(case),
        'device': device,
        'threads': threads,
        'compiled': compiled,
    }
    result = subprocess.run(
        [sys.executable, '-m', f'{__package__}.peak', json.dumps(task)],
        capture_output=True,
        text=True,
        env={**os.environ, **ENVIRONMENT},
    )
    if result.returncode < 0:
        return None, f'process ended by {signal.Signals(-result.returncode).name}'
    if result.returncode:
        return None, result.stderr.strip().rsplit('\n', 1)[-1]
    answer = json.loads(result.stdout.splitlines()[-1])
    return (Memory(**answer['memory']) if answer['memory'] else None), answer['reason']
