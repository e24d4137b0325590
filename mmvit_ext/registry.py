"""Registries of the package, children of mmengine's, all in the scope ``mmvit_ext``.

A config under any default scope (mmdet, mmseg, mmpretrain, ...) writes the scope in front,
``type='mmvit_ext.ReSwin'``: mmengine then imports this file, and ``locations`` the classes.
"""

from typing import Any

from mmengine.registry import DATASETS as ROOT_DATASETS
from mmengine.registry import FUNCTIONS as ROOT_FUNCTIONS
from mmengine.registry import HOOKS as ROOT_HOOKS
from mmengine.registry import MODELS as ROOT_MODELS
from mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS as ROOT_OPTIM_WRAPPER_CONSTRUCTORS
from mmengine.registry import STRATEGIES as ROOT_STRATEGIES
from mmengine.registry import TRANSFORMS as ROOT_TRANSFORMS
from mmengine.registry import WEIGHT_INITIALIZERS as ROOT_WEIGHT_INITIALIZERS
from mmengine.registry import Registry


class NamingRegistry(Registry):
    """A registry that answers an unknown name with the names it holds."""

    def get(self, key: str) -> Any:
        """Looks up ``key`` as mmengine does.

        Raises:
            KeyError: If neither this registry nor a parent holds ``key``; lists the known names.
        """
        scope, name = self.split_scope_key(key)
        self.import_from_location()
        own = scope in (None, self.scope) and '.' not in name
        parent = self.parent
        inherited = scope is None and parent is not None and name in parent.module_dict
        if own and not inherited and name not in self.module_dict:
            known = ', '.join(f'{self.scope}.{k}' for k in sorted(self.module_dict))
            raise KeyError(f"'{key}' is not a {self.name} of mmvit_ext; it has: {known}")
        return super().get(key)


MODELS = NamingRegistry(
    'model', parent=ROOT_MODELS, scope='mmvit_ext', locations=['mmvit_ext.models']
)
WEIGHT_INITIALIZERS = NamingRegistry(
    'weight initializer',
    parent=ROOT_WEIGHT_INITIALIZERS,
    scope='mmvit_ext',
    locations=['mmvit_ext.engine.pretrained'],
)
OPTIM_WRAPPER_CONSTRUCTORS = NamingRegistry(
    'optimizer wrapper constructor',
    parent=ROOT_OPTIM_WRAPPER_CONSTRUCTORS,
    scope='mmvit_ext',
    locations=['mmvit_ext.engine.layer_decay'],
)
HOOKS = NamingRegistry(
    'hook', parent=ROOT_HOOKS, scope='mmvit_ext', locations=['mmvit_ext.engine.hooks']
)
DATASETS = NamingRegistry(
    'dataset', parent=ROOT_DATASETS, scope='mmvit_ext', locations=['mmvit_ext.datasets.coco']
)
TRANSFORMS = NamingRegistry(
    'transform',
    parent=ROOT_TRANSFORMS,
    scope='mmvit_ext',
    locations=['mmvit_ext.datasets.transforms'],
)
FUNCTIONS = NamingRegistry(
    'function', parent=ROOT_FUNCTIONS, scope='mmvit_ext', locations=['mmvit_ext.engine.fsdp']
)
STRATEGIES = NamingRegistry(
    'strategy', parent=ROOT_STRATEGIES, scope='mmvit_ext', locations=['mmvit_ext.engine.fsdp']
)
