"""Transforms that the configs use; importing this package registers them."""

from .load_image import LoadImageFromFile
from .shrink import Shrink
from .translate import Translate

__all__ = ['LoadImageFromFile', 'Shrink', 'Translate']
