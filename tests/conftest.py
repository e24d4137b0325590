"""One thread a process: small tensors gain nothing from more, and busy cores lose much."""

import pytest
import torch
from mmengine.registry import DefaultScope
from mmengine.visualization import Visualizer

import mmvit_ext  # noqa: F401  installs the stand-in before anything imports mmdet


@pytest.fixture(scope='session', autouse=True)
def one_thread():
    """Runs the tests on one thread, as benchmarks are elsewhere."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def seeded():
    """Gives every test the same random numbers."""
    torch.manual_seed(0)


def kinds(base):
    """A class and all that derive from it."""
    return [base, *(kind for derived in base.__subclasses__() for kind in kinds(derived))]


@pytest.fixture(autouse=True)
def no_instances_left():
    """Takes back what mmengine keeps in the process: a run's default scope and visualizer."""
    yield
    for kind in kinds(DefaultScope) + kinds(Visualizer):
        kind._instance_dict.clear()
