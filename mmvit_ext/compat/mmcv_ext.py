"""A stand-in for ``mmcv._ext``, mmcv's compiled ops, where they are not installed.

``mmcv.ops`` asks ``mmcv._ext`` for some hundred functions when it is imported, and
``mmdet.models`` and ``mmseg.models`` import ``mmcv.ops``, so without the compiled ops
not even a detector that needs nothing but NMS and RoI align can be built. The module
made here has an attribute for every op mmcv asks for. The ops in ``SERVED_OPS`` are
computed in ``mmvit_ext.compat.ops``; any other op raises ``MissingOpError`` when it is
called.

A compiled ``mmcv._ext`` always comes first: it is left as it is.
"""

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import sys
import types
from typing import Any

EXT_NAME = 'mmcv._ext'
SWITCH = 'MMVIT_EXT_STAND_IN'
SERVED_OPS = frozenset({'nms', 'softnms', 'nms_match', 'roi_align_forward', 'roi_align_backward'})


class MissingOpError(NotImplementedError):
    """An op of mmcv was called that needs mmcv's compiled extension.

    Args:
        op: Name of the op, as in ``mmcv._ext``.
    """

    def __init__(self, op: str) -> None:
        super().__init__(op)
        self.op = op

    def __str__(self) -> str:
        """One line that names the op and says how to get a compiled mmcv."""
        return (
            f'mmcv op "{self.op}" needs a compiled mmcv, and this mmcv has no compiled ops: with '
            'torch 2.10.0, torchvision 0.25.0 and setuptools>=77,<81 installed, build one by '
            '`pip install --force-reinstall --no-cache-dir --no-deps --no-build-isolation '
            'onedl-mmcv` (about 12 minutes on 2 cores), or '
            "install one of upstream mmcv's prebuilt wheels"
        )


class StandInOp:
    """The callable behind one attribute of the stand-in module.

    Args:
        name: Name of the op, as in ``mmcv._ext``.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the op with the arguments of its compiled namesake.

        Raises:
            MissingOpError: The op is not one of ``SERVED_OPS``.
        """
        if self.name not in SERVED_OPS:
            raise MissingOpError(self.name)
        announce_once()
        # Imports torchvision, which is why it waits for the first call of an op.
        from . import ops

        return getattr(ops, self.name)(*args, **kwargs)

    def __repr__(self) -> str:
        """Name the op and whether it can be called."""
        state = 'served' if self.name in SERVED_OPS else 'missing'
        return f'<{state} stand-in for {EXT_NAME}.{self.name}>'


class StandInExt(types.ModuleType):
    """Module with the interface of ``mmcv._ext``; its ops are made when asked for."""

    @staticmethod
    def get_compiler_version() -> str:
        """What ``mmcv.ops.get_compiler_version`` reports."""
        return 'none (mmcv without compiled ops)'

    @staticmethod
    def get_compiling_cuda_version() -> str:
        """What ``mmcv.ops.get_compiling_cuda_version`` reports."""
        return 'none (mmcv without compiled ops)'

    def __getattr__(self, name: str) -> StandInOp:
        """Make the op ``name``.

        Raises:
            AttributeError: ``name`` starts with an underscore: no op does, and Python asks
                modules for names such as ``__path__`` to find out what they are.
        """
        if name.startswith('_'):
            raise AttributeError(f'module {self.__name__!r} has no attribute {name!r}')
        op = StandInOp(name)
        setattr(self, name, op)
        return op

    def __reduce__(self) -> tuple:
        """Copy and pickle by reference, so that objects that hold the module can be."""
        return _import_ext, ()


class StandInLoader(importlib.abc.Loader):
    """Loader in the stand-in's ``__spec__``, as ``pkgutil`` and ``importlib`` expect one."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> StandInExt:
        """Return a new stand-in module."""
        return StandInExt(spec.name, 'Stand-in for the compiled ops of mmcv.')

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run: the attributes come from the module's class."""


def new_stand_in() -> StandInExt:
    """Return a new stand-in module that is not yet known to Python's import system."""
    spec = importlib.machinery.ModuleSpec(EXT_NAME, StandInLoader(), origin=__name__)
    return importlib.util.module_from_spec(spec)


def stand_in_active() -> bool:
    """Whether ``mmcv._ext`` is the stand-in rather than the compiled module."""
    return isinstance(sys.modules.get(EXT_NAME), StandInExt)


def install_mmcv_stand_in() -> bool:
    """Make the stand-in importable as ``mmcv._ext`` if mmcv has no compiled ops.

    Nothing happens where mmcv itself is absent, where ``mmcv._ext`` is a compiled module
    (imported already or not), or where the environment variable ``MMVIT_EXT_STAND_IN`` is
    ``0``. ``None`` in ``sys.modules['mmcv._ext']`` counts as absent. Neither mmcv nor
    torchvision is imported. A second call changes nothing.

    Returns:
        Whether the stand-in is in place.
    """
    if not stand_in_active():
        if os.environ.get(SWITCH) == '0' or not _compiled_ops_missing():
            return False
        sys.modules[EXT_NAME] = new_stand_in()
    if 'mmcv' in sys.modules:
        # As importing a submodule does, for `import mmcv._ext` followed by `mmcv._ext.nms`.
        sys.modules['mmcv']._ext = sys.modules[EXT_NAME]
    return True


def _compiled_ops_missing() -> bool:
    """Whether there is an mmcv and it has no compiled ops."""
    package = importlib.util.find_spec('mmcv')
    if package is None:
        return False
    if EXT_NAME in sys.modules:
        return sys.modules[EXT_NAME] is None
    # importlib.util.find_spec(EXT_NAME) would import mmcv, and with it OpenCV, to look inside.
    path = package.submodule_search_locations
    return importlib.machinery.PathFinder.find_spec(EXT_NAME, path) is None


def _import_ext() -> types.ModuleType:
    """Return the ``mmcv._ext`` of this process, compiled or not."""
    install_mmcv_stand_in()
    return importlib.import_module(EXT_NAME)


@functools.cache
def announce_once() -> None:
    """Log, once per process, that ops are computed by the stand-in."""
    from mmengine.logging import print_log

    print_log(
        'mmcv has no compiled ops: torchvision serves its nms and average RoI align, mmvit_ext '
        'its soft-NMS and nms_match, and any other compiled op raises MissingOpError. '
        f'Set {SWITCH}=0 in the environment to turn this off.',
        logger='current',
        level=logging.INFO,
    )
