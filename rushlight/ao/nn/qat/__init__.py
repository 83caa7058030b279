"""Layers of training: they compute with rounded weights."""

from .modules import *
