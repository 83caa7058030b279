"""Recurrent and attention layers written in parts, so that each part can become one of integers."""

from .modules import *
