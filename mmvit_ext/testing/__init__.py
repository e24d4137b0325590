"""What tests of backbones need, in this package and in those built on it."""

from .weights import randomise

__all__ = ['randomise']
