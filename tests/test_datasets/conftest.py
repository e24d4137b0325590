"""Data sets of each layout, made once for all tests of this folder."""

from pathlib import Path

import pytest

from mmvit_ext.datasets import DigitSettings, make_digits

SMALL = {'train': 24, 'val': 12, 'height': 96, 'width': 128}


@pytest.fixture(scope='session')
def coco_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A COCO folder with the digit categories."""
    root = tmp_path_factory.mktemp('coco')
    make_digits(root, DigitSettings('coco', **SMALL))
    return root


@pytest.fixture(scope='session')
def coco_names_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A COCO folder with the 80 official categories."""
    root = tmp_path_factory.mktemp('coco_names')
    make_digits(root, DigitSettings('coco', coco_names=True, **SMALL))
    return root


@pytest.fixture(scope='session')
def ade_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ADE20K folder."""
    root = tmp_path_factory.mktemp('ade')
    make_digits(root, DigitSettings('ade', **SMALL))
    return root


@pytest.fixture(scope='session')
def imagenet_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ImageNet folder."""
    root = tmp_path_factory.mktemp('imagenet')
    make_digits(root, DigitSettings('imagenet', **SMALL))
    return root
