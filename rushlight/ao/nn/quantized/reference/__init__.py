"""Layers of reference models: they compute with numbers, on weights that were rounded."""

from .modules import *
