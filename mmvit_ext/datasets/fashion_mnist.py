"""A fixed part of Fashion-MNIST (arXiv 1708.07747), real pictures that a Debian package brings."""

import gzip
import shutil
import subprocess
from pathlib import Path

import numpy as np

PACKAGE = 'dataset-fashion-mnist'
INSTALLED = Path('/usr/share/datasets/fashion-mnist')
FILES = {'train': 'train', 'val': 't10k'}
SIDE = 32
STAMP = 'fashion-mnist.txt'


def find_fashion_mnist(scratch: Path) -> Path | None:
    """Finds the package's files, unpacking the package into a folder where it is not installed.

    Args:
        scratch: Where the package may be unpacked; nothing is installed on the system.

    Returns:
        The folder of the four ``*-ubyte.gz`` files, or None where apt cannot provide them.
    """
    if INSTALLED.is_dir():
        return INSTALLED
    unpacked = scratch / INSTALLED.relative_to('/')
    if not unpacked.is_dir() and shutil.which('apt-get') and shutil.which('dpkg'):
        scratch.mkdir(parents=True, exist_ok=True)
        fetched = subprocess.run(
            ['apt-get', 'download', PACKAGE], cwd=scratch, capture_output=True, text=True
        )
        for file in scratch.glob(f'{PACKAGE}*.deb'):
            subprocess.run(['dpkg', '-x', str(file), str(scratch)], check=True)
        if fetched.returncode:
            print(f'{PACKAGE}: {fetched.stderr.strip().splitlines()[-1]}')
    return unpacked if unpacked.is_dir() else None


def write_fashion_mnist(source: Path, out: Path, train: int, val: int) -> None:
    """Writes the first pictures of both splits in ImageNet's folder layout.

    Pictures of 28 x 28 pixels get a black border of two, and the same grey in three channels.

    Args:
        source: Folder of the four ``*-ubyte.gz`` files.
        out: Folder to write to; one that is complete is left as it is.
        train: Number of training pictures, at most 60000.
        val: Number of validation pictures, taken from the test files, at most 10000.

    Raises:
        FileExistsError: If the folder holds something else.
    """
    import cv2

    stamp, wanted = out / STAMP, f'{train} {val}\n'
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    if out.exists() and not stamp.is_file():
        raise FileExistsError(f'{out} holds other files: choose another folder')
    part = out.with_name(f'{out.name}.part')
    shutil.rmtree(part, ignore_errors=True)
    for split, count in (('train', train), ('val', val)):
        pictures = _read(source / f'{FILES[split]}-images-idx3-ubyte.gz', 16).reshape(-1, 28, 28)
        labels = _read(source / f'{FILES[split]}-labels-idx1-ubyte.gz', 8)
        for i, (picture, label) in enumerate(zip(pictures[:count], labels[:count])):
            folder = part / split / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(folder / f'{i:05}.png'), np.pad(picture, (SIDE - 28) // 2))
    (part / STAMP).write_text(wanted)
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)


def _read(file: Path, header: int) -> np.ndarray:
    """The bytes behind the header of an IDX file."""
    with gzip.open(file) as stream:
        return np.frombuffer(stream.read(), np.uint8, offset=header)
