"""mmvit_ext: vision transformer backbones for OpenMMLab.

Importing the package registers nothing by hand and loads no model: the registries in
:mod:`mmvit_ext.registry` know where the classes live and import them when a config names one.
"""

from .compat import check_versions, install_mmcv_stand_in
from .version import __version__

check_versions()
install_mmcv_stand_in()

__all__ = ['__version__']
