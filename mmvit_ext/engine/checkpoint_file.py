"""Reading checkpoint files: safely, and with errors that say what to do."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer, print_log
from mmengine.runner import CheckpointLoader

URL_SCHEMES = ('http://', 'https://')


def safe_globals() -> list[Any]:
    """What mmengine puts into its checkpoints beside tensors, harmless to unpickle."""
    multiarray = np._core.multiarray if hasattr(np, '_core') else np.core.multiarray
    dtypes = {type(np.dtype(t)) for t in (bool, int, float, np.int32, np.float32, np.uint8)}
    names = [HistoryBuffer, multiarray._reconstruct, multiarray.scalar, np.ndarray, np.dtype]
    return [*names, *dtypes, (_statistic, 'builtins.getattr')]


def _statistic(owner: Any, name: str) -> Any:
    """Stands in for getattr, by which a pickled HistoryBuffer finds its statistics methods."""
    if owner is not HistoryBuffer or name.startswith('_'):
        raise pickle.UnpicklingError(f'Unsupported: getattr({owner!r}, {name!r})')
    return getattr(owner, name)


def trust_mmengine_checkpoints() -> None:
    """Lets torch's safe loader read checkpoints that a training run wrote.

    Upstream mmengine calls ``torch.load`` without a list of its own classes, and torch >= 2.6
    then refuses the files that mmengine itself saved.
    """
    torch.serialization.add_safe_globals(safe_globals())


def read_checkpoint(location: str | os.PathLike) -> dict[str, Any]:
    """Reads a checkpoint from a file or an address.

    Args:
        location: A path, or what mmengine's loader takes (``https://``, ``torchvision://``, ...).

    Returns:
        What the file holds, tensors on the CPU.

    Raises:
        FileNotFoundError: If the path does not exist.
        ConnectionError: If an address cannot be fetched.
        ValueError: If the file is no checkpoint, is cut off, or holds objects that are not safe
            to unpickle.
    """
    location = os.fspath(location)
    if location.startswith(URL_SCHEMES):
        return _fetch(location)
    if '://' in location:
        return _from_catalogue(location)
    path = Path(location).expanduser()
    if not path.is_file():
        raise FileNotFoundError(
            f'checkpoint={location}: no such file (looked for {path.absolute()}); give the path '
            'of a checkpoint or a URL'
        )
    return _read_file(path)


def _from_catalogue(location: str) -> dict[str, Any]:
    try:
        return CheckpointLoader.load_checkpoint(location, map_location='cpu', logger='current')
    except KeyError as error:
        raise ValueError(
            f'checkpoint={location}: the catalogue has no {error}; give a name that it has, a path '
            'or a URL'
        ) from error


def _fetch(url: str) -> dict[str, Any]:
    cache = Path(torch.hub.get_dir()) / 'checkpoints'
    print_log(f'fetching {url} (kept in {cache})', logger='current')
    try:
        file = cache / os.path.basename(url)
        if not file.is_file():
            cache.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(url, str(file), progress=False)
    except OSError as error:
        raise ConnectionError(
            f'checkpoint={url}: could not be fetched ({error}); put the file into {cache}, or set '
            'checkpoint (init_cfg.checkpoint, load_from) to a local path'
        ) from error
    return _read_file(file)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        # what is trusted for good must not be forgotten behind this context
        known = torch.serialization.get_safe_globals()
        new = [trusted for trusted in safe_globals() if trusted not in known]
        with torch.serialization.safe_globals(new):
            content = torch.load(path, map_location='cpu', weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(_refusal(path, error)) from error
    except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        raise ValueError(
            f'checkpoint={path}: not a checkpoint, or cut off ({path.stat().st_size} bytes; '
            f'{_first_line(error)}); fetch or save it again'
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f'checkpoint={path}: holds a {type(content).__name__}, not a dict of weights'
        )
    return content


def _refusal(path: Path, error: Exception) -> str:
    text = str(error)
    # operands that torch's unpickler does not know: the bytes are no pickle that torch saved
    if 'Unsupported operand' in text or not ('Unsupported' in text or 'GLOBAL' in text):
        return f'checkpoint={path}: not a checkpoint ({_first_line(error)}); give a .pth file'
    line = next(part for part in text.splitlines() if 'Unsupported' in part or 'GLOBAL' in part)
    return (
        f'checkpoint={path}: holds more than weights, and torch refuses to unpickle it safely '
        f'({line.strip()[:160]}); if you trust the file, save its weights alone: '
        "torch.save(torch.load(path, weights_only=False)['state_dict'], new_path)"
    )


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:160] if lines else type(error).__name__
