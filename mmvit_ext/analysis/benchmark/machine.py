"""What a measurement ran on: hardware, and versions of what took part."""

import os
import platform
from collections.abc import Iterable
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path

import torch


def describe(device: torch.device, packages: Iterable[str]) -> dict[str, str]:
    """Describes the machine.

    Args:
        device: Where the models ran.
        packages: Packages that the models came from.

    Returns:
        Facts by name.
    """
    facts = {
        'date': datetime.now(timezone.utc).date().isoformat(),
        'CPU': f'{_cpu_name()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}',
        'system': f'{platform.system()} {platform.machine()}',
        'Python': platform.python_version(),
    }
    if device.type == 'cuda':
        facts['GPU'] = f'{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}'
    for package in ('torch', *sorted(packages)):
        facts[package] = import_module(package).__version__
    return facts


def _cpu_name() -> str:
    """The processor's name; Linux keeps it in a file of its own."""
    file = Path('/proc/cpuinfo')
    lines = file.read_text().splitlines() if file.exists() else []
    names = [line.partition(':')[2].strip() for line in lines if line.startswith('model name')]
    return names[0] if names else platform.processor()
