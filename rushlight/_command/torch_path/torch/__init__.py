"""Stands in for PyTorch: importing it turns on the alias and hands over Rushlight's own module."""

import _rushlight  # makes Rushlight importable

from rushlight._command import alias

alias.install()
