"""Version complaints are one line with package, found and wanted version."""

import importlib.metadata
import types
import warnings

import pytest

from mmvit_ext.compat import versions


def test_installed_versions_pass():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        versions.check_versions()


@pytest.mark.parametrize('found, text', [('0.9.1', '0.9.1 found'), (None, 'not installed')])
def test_old_or_missing_requirement_is_an_import_error(monkeypatch, found, text):
    real = versions._imported_version
    monkeypatch.setattr(
        versions, '_imported_version', lambda name: found if name == 'mmengine' else real(name)
    )
    with pytest.raises(ImportError, match=f'^mmengine: {text}, mmvit_ext needs >= 0.10.7; pip'):
        versions.check_versions()


def test_old_sister_package_is_a_warning(monkeypatch):
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, 'version', lambda name: '2.28.0' if name == 'mmdet' else real(name)
    )
    with pytest.warns(UserWarning, match='mmdet: 2.28.0 found, mmvit_ext needs >= 3.3.0'):
        versions.check_versions()


def test_import_error_inside_a_package_is_not_taken_for_its_absence(monkeypatch):
    def broken(name):
        raise ModuleNotFoundError("No module named 'yaml'", name='yaml')

    monkeypatch.setattr(versions, 'importlib', types.SimpleNamespace(import_module=broken))
    with pytest.raises(ModuleNotFoundError, match='yaml'):
        versions.check_versions()
