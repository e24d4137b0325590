"""Checkpoints that a full disk or a kill cannot cost: written aside, then moved into place."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook as MMEngineCheckpointHook

from mmvit_ext.errors import UsageError
from mmvit_ext.registry import HOOKS

BACKEND = 'mmvit_ext.careful'
# ends no name that a run or a user would take for a checkpoint
PARTIAL = '.partial'


@register_backend(BACKEND)
class CarefulBackend(LocalBackend):
    """Local files, of which none is ever half written or removed too early.

    Attributes:
        outdated: Paths that mmengine asked to remove, in order; they are still there.
    """

    def __init__(self) -> None:
        self.outdated: list[str] = []

    def put(self, obj: bytes, filepath: str | Path) -> None:
        """Writes a file under another name, flushes it to the disk and renames it.

        Args:
            obj: What to write.
            filepath: The file; what it held before stays until the new content is complete.

        Raises:
            OSError: If it cannot be written; the file is as it was, and nothing else is left.
        """
        path = Path(filepath)
        partial = path.with_name(path.name + PARTIAL)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(partial, 'wb') as file:
                file.write(obj)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise OSError(error.errno, error.strerror, str(path)) from error

    def remove(self, filepath: str | Path) -> None:
        """Notes a file for :meth:`remove_outdated`."""
        self.outdated.append(str(filepath))

    def rmtree(self, dir_path: str | Path) -> None:
        """Notes a folder for :meth:`remove_outdated`."""
        self.outdated.append(str(dir_path))

    def remove_outdated(self, current: set[str]) -> None:
        """Removes what was noted.

        Args:
            current: Paths that have been written anew and stay.
        """
        for path in set(self.outdated) - current:
            if os.path.isdir(path):
                super().rmtree(path)
            else:
                Path(path).unlink(missing_ok=True)
        self.outdated.clear()


@HOOKS.register_module()
class CheckpointHook(MMEngineCheckpointHook):
    """mmengine's hook, with the same arguments, that never has less on disk than before.

    mmengine removes the oldest checkpoint before it writes the newest, straight under its final
    name: a full disk or a kill then leaves a broken file, and with ``max_keep_ckpts=1`` no other.
    Here a checkpoint (``best_*`` too) is written as ``NAME.partial``, flushed to the disk and
    renamed; then ``last_checkpoint`` is written, then old files are removed. So the disk needs
    room for one more than ``max_keep_ckpts``.

    Folders on other storage (``out_dir`` with ``://``, ``backend_args``, ``file_client_args``) are
    mmengine's matter, as before. The strategies of ``FlexibleRunner`` write files by themselves;
    theirs are only removed later.
    """

    def before_train(self, runner: Any) -> None:
        """Prepares the folder as mmengine does, and removes what a kill left of a file.

        Args:
            runner: The runner.
        """
        elsewhere = self.backend_args or self.file_client_args or '://' in str(self.out_dir)
        if not elsewhere:
            self.backend_args = {'backend': BACKEND}
        super().before_train(runner)
        if isinstance(self.file_backend, CarefulBackend) and is_main_process():
            self.file_backend.remove_outdated(set())
            for partial in Path(self.out_dir).glob(f'*.pth{PARTIAL}'):
                partial.unlink()

    def _save_checkpoint_with_step(self, runner: Any, step: int, meta: dict[str, Any]) -> None:
        with self._carefully(runner):
            super()._save_checkpoint_with_step(runner, step, meta)

    def _save_best_checkpoint(self, runner: Any, metrics: dict[str, Any]) -> None:
        with self._carefully(runner):
            super()._save_best_checkpoint(runner, metrics)

    @contextlib.contextmanager
    def _carefully(self, runner: Any) -> Iterator[None]:
        if not isinstance(self.file_backend, CarefulBackend):
            yield
            return
        # read now: mmengine names the next file here before it is written
        good = runner.message_hub.runtime_info.get('last_ckpt')
        try:
            yield
        except OSError as error:
            raise UsageError(_failure(error, self.out_dir, good)) from error
        best = getattr(self, 'best_ckpt_path_dict', None) or {}
        current = {self.last_ckpt, getattr(self, 'best_ckpt_path', None), *best.values()}
        self.file_backend.remove_outdated(current)


def _failure(error: OSError, out_dir: str, good: str | None) -> str:
    folder = Path(out_dir).absolute()
    # the folder itself may be what could not be made
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free / 2**30
    kept = f'last good checkpoint: {good}' if good else 'no checkpoint has been saved yet'
    return (
        f'checkpoint={error.filename or folder}: could not be written ({error.strerror or error}; '
        f'{free:.2f} GiB free in {there}); {kept}; make room there and go on with --resume'
    )
