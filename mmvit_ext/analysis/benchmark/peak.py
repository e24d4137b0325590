"""The process that measures peak memory: ``python -m mmvit_ext.analysis.benchmark.peak TASK``.

TASK is JSON, the arguments of :func:`mmvit_ext.analysis.benchmark.memory.memory_of`; so is the
answer, the last line printed.
"""

import dataclasses
import json
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn as nn

from .attempt import attempt
from .case import Case
from .memory import Memory
from .sources import build
from .spec import parse_spec


def measure_step(task: dict[str, Any]) -> Memory:
    """Measures a step of a model in this process.

    Args:
        task: The arguments of :func:`mmvit_ext.analysis.benchmark.memory.memory_of`.
    """
    torch.set_num_threads(task['threads'])
    device = torch.device(task['device'])
    case = Case(**task['case'])
    _load_kernels(device)
    model = build(parse_spec(task['model'])).to(device)
    if task['compiled']:
        model = torch.compile(model, dynamic=False)
    step = case.step(model, device)
    if task['compiled']:
        step()
    return peak_on_gpu(step, device) if device.type == 'cuda' else peak_on_cpu(step)


def _load_kernels(device: torch.device) -> None:
    """Runs a little of everything, as libraries take memory when they are first used."""
    layers = [nn.Conv2d(3, 8, 4), nn.GELU(), nn.Flatten(), nn.LayerNorm(200), nn.Linear(200, 8)]
    model = nn.Sequential(*layers).to(device)
    model(torch.rand(2, 3, 8, 8, device=device)).sum().backward()


def peak_on_cpu(call: Callable[[], object]) -> Memory:
    """Peak resident size of this process while a call runs."""
    if not _forget_peak():
        call()
        # in kilobytes, on macOS in bytes
        unit = 1 if sys.platform == 'darwin' else 1024
        return Memory(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, None)
    before = _resident('VmRSS')
    call()
    peak = _resident('VmHWM')
    return Memory(peak, peak - before)


def _forget_peak() -> bool:
    """Makes Linux start the peak anew; False elsewhere, and where that is forbidden."""
    try:
        Path('/proc/self/clear_refs').write_text('5')
    except OSError:
        return False
    return True


def _resident(field: str) -> int:
    """Bytes in a field of this process's status, on Linux."""
    status = Path('/proc/self/status').read_text()
    return 1024 * int(re.search(rf'^{field}:\s+(\d+) kB', status, re.MULTILINE)[1])


def peak_on_gpu(call: Callable[[], object], device: torch.device) -> Memory:
    """Most that torch had allocated on a GPU while a call ran."""
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    call()
    torch.cuda.synchronize(device)
    peak = torch.cuda.max_memory_allocated(device)
    return Memory(peak, peak - before)


def main(task: str) -> None:
    """Prints the answer to a task."""
    memory, reason = attempt(lambda: measure_step(json.loads(task)))
    print(json.dumps({'memory': memory and dataclasses.asdict(memory), 'reason': reason}))


if __name__ == '__main__':
    main(sys.argv[1])
