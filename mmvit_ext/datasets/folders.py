"""What a demo data set is made of, and who owns the folder it goes to.

A small stamp file in the folder records the settings. It is marked complete only after the last
picture, so a folder cut short is never taken for a finished one, and files that were not made
from a stamp are never removed.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

LAYOUTS: tuple[str, ...] = ('coco', 'ade', 'imagenet')
STAMP_NAME = 'digits.json'

# Raise this when the pictures or labels change, so that older folders are not taken as current.
_FORMAT = 1
_SIZE_RANGE = (32, 4096)


@dataclass(frozen=True)
class DigitSettings:
    """Everything that decides the bytes of a demo data set.

    Attributes:
        layout: ``'coco'``, ``'ade'`` or ``'imagenet'``.
        train: Number of training pictures.
        val: Number of validation pictures.
        height: Picture height in pixels, 32 to 4096.
        width: Picture width in pixels, 32 to 4096.
        seed: Seed of all random draws, 0 or more.
        coco_names: Name the objects after the 80 COCO categories; for ``'coco'`` only.

    Raises:
        ValueError: A value is out of range; the message names the field, value and remedy.
    """

    layout: str
    train: int = 400
    val: int = 100
    height: int = 160
    width: int = 160
    seed: int = 0
    coco_names: bool = False

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise ValueError(f'layout={self.layout!r}: use one of {", ".join(LAYOUTS)}')
        for field in ('train', 'val', 'seed'):
            self._check_range(field, 0, None)
        for field in ('height', 'width'):
            self._check_range(field, *_SIZE_RANGE)
        if self.coco_names and self.layout != 'coco':
            raise ValueError(
                f'coco_names=True: needs layout=coco, not {self.layout}; leave it out or change '
                'the layout'
            )

    def _check_range(self, field: str, low: int, high: int | None) -> None:
        """Raise ``ValueError`` unless a field is a whole number within its range."""
        value = getattr(self, field)
        fits = isinstance(value, int) and value >= low and (high is None or value <= high)
        if not fits:
            allowed = f'{low} or more' if high is None else f'from {low} to {high}'
            raise ValueError(f'{field}={value!r}: use a whole number, {allowed}')

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.height, self.width

    def count(self, split: str) -> int:
        """Return the number of pictures of ``'train'`` or ``'val'``."""
        return {'train': self.train, 'val': self.val}[split]


@dataclass(frozen=True)
class Stamp:
    """What a folder says about the data set in it."""

    settings: DigitSettings
    format: int = _FORMAT
    complete: bool = True


def read_stamp(out: Path) -> Stamp | None:
    """Read the stamp of a folder; None when it has none that can be understood."""
    try:
        record = json.loads((out / STAMP_NAME).read_text(encoding='utf-8'))
        return Stamp(DigitSettings(**record.pop('settings')), **record)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write_stamp(out: Path, stamp: Stamp) -> None:
    """Write the stamp of a folder."""
    text = json.dumps(asdict(stamp), indent=2) + '\n'
    (out / STAMP_NAME).write_text(text, encoding='utf-8')


def is_current(out: Path, settings: DigitSettings) -> bool:
    """Tell whether a folder holds a finished data set made with these settings."""
    return read_stamp(out) == Stamp(settings)


def check_free(out: Path, settings: DigitSettings) -> None:
    """Refuse a folder whose files are not ours to replace.

    A missing or empty folder is free, and so is one whose making with the same settings was cut
    short.

    Args:
        out: Folder of the data set.
        settings: Settings of the data set to be written.

    Raises:
        FileExistsError: The folder holds other files, or a data set with other settings.
    """
    if not out.is_dir() or not any(out.iterdir()):
        return
    stamp = read_stamp(out)
    if stamp == Stamp(settings, complete=False):
        return
    content = 'files that are no demo data set' if stamp is None else 'other settings'
    raise FileExistsError(
        f'{out} already holds {content}: choose another folder, or overwrite with --force'
    )


def remove_files(out: Path, names: list[str]) -> None:
    """Remove files of an earlier data set and the folders that become empty with them.

    Args:
        out: Folder of the data set.
        names: Paths relative to ``out``; missing ones are passed over.
    """
    folders = set()
    for name in names:
        path = out / name
        path.unlink(missing_ok=True)
        folders.update(parent for parent in path.parents if out in parent.parents)
    for folder in sorted(folders, key=lambda folder: len(folder.parts), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
