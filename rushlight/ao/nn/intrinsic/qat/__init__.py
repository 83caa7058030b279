"""Fused layers of training."""

from .modules import *
