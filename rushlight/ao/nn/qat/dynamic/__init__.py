"""Layers of training for models whose operands get their scale at each call."""

from .modules import *
