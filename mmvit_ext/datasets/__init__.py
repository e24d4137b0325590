"""Makers of small demo data sets of handwritten digits in the COCO, ADE20K and ImageNet layouts.

Names are looked up on first use, so importing this package loads neither OpenCV nor scikit-learn.
"""

from importlib import import_module

_HOME = {
    'COCO_CATEGORIES': 'coco_categories',
    'DIGIT_CLASSES': 'digits',
    'DigitPool': 'digits',
    'load_pool': 'digits',
    'render_digit': 'digits',
    'Instance': 'scenes',
    'Scene': 'scenes',
    'make_crop': 'scenes',
    'make_scene': 'scenes',
    'DigitSettings': 'folders',
    'make_digits': 'layouts',
    'write_ade': 'layouts',
    'write_coco': 'layouts',
    'write_imagenet': 'layouts',
}

__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    """Import the module that holds ``name`` and hand the name on."""
    if name not in _HOME:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(f'.{_HOME[name]}', __name__), name)


def __dir__() -> list[str]:
    """List the lazily imported names next to the loaded ones."""
    return sorted({*globals(), *__all__})
