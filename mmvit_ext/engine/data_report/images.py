"""Image files that are missing, unreadable, cut off or of another size than is said."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.progress import track

from mmvit_ext.datasets.image_bytes import JPEG_END, PNG_END, decoding_error, is_cut_off

# longest marker that ends an image file
TAIL = len(PNG_END)


@dataclass
class ImageCheck:
    """Outcome for the images of a data set.

    Attributes:
        listed: How many it names.
        missing: Paths without a file.
        broken: Paths and what is wrong with each.
        resized: Paths and both sizes, where the annotations say another one.
    """

    listed: int = 0
    missing: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)


def check_images(infos: Sequence[dict], decode: bool) -> ImageCheck:
    """Looks at the files of a data set, each once.

    Args:
        infos: For each image ``img_path`` and, if known, ``width`` and ``height`` in pixels.
        decode: Decode every image instead of reading the header and the end of the file.

    Returns:
        What was found.
    """
    by_path = {info['img_path']: info for info in infos}
    result = ImageCheck(listed=len(by_path))
    for path, info in progress(by_path.items(), 'images'):
        if not Path(path).is_file():
            result.missing.append(path)
            continue
        size, fault = image_size(path, decode)
        said = (info.get('width'), info.get('height'))
        if fault:
            result.broken.append(f'{path} ({fault})')
        elif all(said) and size != said:
            result.resized.append(f'{path} ({size[0]} x {size[1]}, not {said[0]} x {said[1]})')
    return result


def image_size(path: str, decode: bool = False) -> tuple[tuple[int, int] | None, str | None]:
    """Width and height of an image in pixels, or what is wrong with its file.

    Args:
        path: The file.
        decode: Decode all of it.

    Returns:
        The size as stored, before any rotation that the header asks for; and a fault, or None.
    """
    try:
        with Image.open(path) as image:
            size = image.size
    # Pillow's plug-ins raise more than OSError
    except Exception as error:
        empty = Path(path).stat().st_size == 0
        return None, 'empty' if empty else f'unreadable: {type(error).__name__}'
    if decode:
        return size, decoding_error(Path(path).read_bytes())
    cut_off = not _has_end(path) and is_cut_off(Path(path).read_bytes())
    return size, 'cut off' if cut_off else None


def _has_end(path: str) -> bool:
    """Whether a file ends as complete JPEGs and PNGs do; bytes behind the marker make it False."""
    with open(path, 'rb') as file:
        file.seek(-TAIL, 2)
        tail = file.read()
    return tail.endswith((JPEG_END, PNG_END))


def progress(items: Sequence, what: str):
    """Iterates with a progress bar on stderr, which leaves nothing behind."""
    console = Console(stderr=True)
    return track(items, what, total=len(items), console=console, transient=True)
