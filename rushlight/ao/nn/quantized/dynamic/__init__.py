"""Layers with integer weights, whose operands get their scale at each call."""

from .modules import *
