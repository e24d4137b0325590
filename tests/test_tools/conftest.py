"""Tiny data sets and ways to run the tools."""

import subprocess
import sys
from pathlib import Path

import pytest

from mmvit_ext.datasets import DigitSettings, make_digits

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope='session')
def digits(tmp_path_factory):
    """Folders of tiny digit data by layout: eight pictures to train, four to validate."""
    root = tmp_path_factory.mktemp('digits')
    folders = {layout: root / layout for layout in ('coco', 'ade', 'imagenet')}
    for layout, folder in folders.items():
        settings = DigitSettings(layout=layout, train=8, val=4, height=96, width=96)
        make_digits(folder, settings)
    return folders


@pytest.fixture
def tool():
    """Runs a tool in a process of its own, as a user does."""

    def run(script, *args, cwd=ROOT, check=True):
        command = [sys.executable, str(ROOT / 'tools' / script), *map(str, args)]
        result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)
        if check:
            assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
        return result

    return run
