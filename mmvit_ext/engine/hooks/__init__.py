"""Hooks that the configs use; importing this package registers them."""
