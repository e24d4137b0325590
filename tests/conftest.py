"""One thread a process: small tensors gain nothing from more, and busy cores lose much."""

import pytest
import torch
from mmengine.registry import DefaultScope

import mmvit_ext  # noqa: F401  installs the stand-in before anything imports mmdet


@pytest.fixture(scope='session', autouse=True)
def one_thread():
    """Runs the tests on one thread, as benchmarks are elsewhere."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def seeded():
    """Gives every test the same random numbers."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def no_scope_left():
    """Takes back the default scope that a test's runner leaves behind."""
    yield
    DefaultScope._instance_dict.clear()
