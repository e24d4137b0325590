"""Version checks: early, one line each, naming package, found and wanted version."""

import importlib
import importlib.metadata
import warnings

from packaging.version import Version

# Lowest releases that were tried; no upper bounds, they only age.
REQUIRED = {'torch': '2.10.0', 'mmengine': '0.10.7', 'mmcv': '2.1.0'}
OPTIONAL = {
    'mmdet': ('3.3.0', ('mmdet', 'onedl-mmdetection')),
    'mmseg': ('1.2.2', ('mmsegmentation', 'onedl-mmsegmentation')),
    'mmpretrain': ('1.2.0', ('mmpretrain', 'onedl-mmpretrain')),
}
REMEDY = "pip install 'mmvit_ext[onedl]' (or [openmmlab] for the upstream distributions)"


def check_versions() -> None:
    """Compares what is installed with the lowest supported releases.

    Raises:
        ImportError: If torch, mmengine or mmcv is missing or too old.

    Warns:
        UserWarning: If mmdet, mmseg or mmpretrain is installed but too old; they are only
            needed by the configs of their task.
    """
    for package, wanted in REQUIRED.items():
        found = _imported_version(package)
        if found is None or Version(found) < Version(wanted):
            raise ImportError(_complaint(package, found, wanted))
    for package, (wanted, distributions) in OPTIONAL.items():
        found = _distribution_version(distributions)
        if found is not None and Version(found) < Version(wanted):
            warnings.warn(_complaint(package, found, wanted), stacklevel=3)


def _complaint(package: str, found: str | None, wanted: str) -> str:
    state = f'{found} found' if found else 'not installed'
    return f'{package}: {state}, mmvit_ext needs >= {wanted}; {REMEDY}'


def _imported_version(package: str) -> str | None:
    try:
        return str(importlib.import_module(package).__version__)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        return None


def _distribution_version(names: tuple[str, ...]) -> str | None:
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
