"""Loading of images that names the file when something is wrong with it."""

import logging
from typing import Any

import mmcv
import numpy as np
from mmcv.transforms import LoadImageFromFile as MMCVLoadImageFromFile
from mmengine import fileio
from mmengine.logging import print_log

from mmvit_ext.errors import UsageError
from mmvit_ext.registry import TRANSFORMS

from ..image_bytes import is_cut_off

REACTIONS = ('stop', 'skip')


@TRANSFORMS.register_module()
class LoadImageFromFile(MMCVLoadImageFromFile):
    """mmcv's transform, which mmdet, mmseg and mmpretrain share, with a say on broken files.

    A file that is missing, empty, not decodable or cut off (see
    :func:`mmvit_ext.datasets.image_bytes.is_cut_off`) stops the run, or is skipped: the data set
    then draws another image, and one line warns of each file, once in every worker. mmengine skips
    nothing in test mode, so ``'skip'`` is for training.

    An image that is in the results already, without ``img_path``, is left alone: mmpretrain's
    inferencer loads it by itself and takes only transforms of mmcv's name out of the pipeline.

    Args:
        *args: As for mmcv's transform, so ``to_float32``, ``color_type``, ``imdecode_backend``.
        on_error: ``'stop'`` raises, ``'skip'`` warns, and so does mmcv's ``ignore_empty=True``.
        **kwargs: As for mmcv's transform, so ``backend_args`` and others.

    Raises:
        UsageError: On another ``on_error``.
    """

    def __init__(self, *args: Any, on_error: str = 'stop', **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if on_error not in REACTIONS:
            raise UsageError(f'on_error={on_error!r}: choose from {", ".join(REACTIONS)}')
        self.on_error = 'skip' if self.ignore_empty else on_error
        self._warned: set[str] = set()

    def transform(self, results: dict) -> dict | None:
        """Loads ``results['img_path']``.

        Returns:
            The results with ``img``, (H, W, C) or (H, W) as mmcv decodes it, ``img_shape`` and
            ``ori_shape`` in pixels; None for a file that is skipped.

        Raises:
            UsageError: Names the file and what is wrong with it.
        """
        if 'img' in results and 'img_path' not in results:
            return results
        image, fault = self._load(results['img_path'])
        if fault:
            self._react(f'img_path={results["img_path"]}: {fault}')
            return None
        if self.to_float32:
            image = image.astype(np.float32)
        results['img'] = image
        results['img_shape'] = image.shape[:2]
        results['ori_shape'] = image.shape[:2]
        return results

    def _load(self, path: str) -> tuple[np.ndarray | None, str | None]:
        """The image, or what is wrong with its file."""
        try:
            data = self._read(path)
        except OSError as error:
            return None, error.strerror or str(error) or type(error).__name__
        if not data:
            return None, 'the file is empty'
        if is_cut_off(data):
            return None, f'the file is cut off, after {len(data)} bytes'
        try:
            image = mmcv.imfrombytes(data, flag=self.color_type, backend=self.imdecode_backend)
        # a backend that is not installed is no fault of the file
        except ImportError:
            raise
        except Exception as error:
            return None, f'cannot be decoded ({error})'
        return image, None if image is not None else 'cannot be decoded'

    def _read(self, path: str) -> bytes:
        if self.file_client_args is not None:
            return fileio.FileClient.infer_client(self.file_client_args, path).get(path)
        return fileio.get(path, backend_args=self.backend_args)

    def _react(self, message: str) -> None:
        if self.on_error == 'stop':
            raise UsageError(
                f'{message}; replace the file, or go on without it in training: on_error=skip for '
                'mmvit_ext.LoadImageFromFile in train_dataloader.dataset.pipeline'
            )
        if message not in self._warned:
            self._warned.add(message)
            print_log(f'{message}; skipped', 'current', level=logging.WARNING)

    def __repr__(self) -> str:
        return f'{super().__repr__()[:-1]}, on_error={self.on_error!r})'
