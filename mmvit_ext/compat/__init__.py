"""Bridges between mmvit_ext and the OpenMMLab installation it runs in.

``check_versions`` complains about releases that are too old, and
``install_mmcv_stand_in`` lets detectors and segmentors run on an mmcv that was installed
without its compiled ops; see :mod:`mmvit_ext.compat.mmcv_ext`.
"""

from .mmcv_ext import MissingOpError, install_mmcv_stand_in, stand_in_active
from .versions import check_versions

__all__ = ['MissingOpError', 'check_versions', 'install_mmcv_stand_in', 'stand_in_active']
