"""Operators that take functions: choices, loops and scans. They run as plain programs, so gradients, vmap and
traces of them are those of the operators that the functions call."""

from rushlight._command.submodules import submodules_of
from rushlight._higher_order_ops.associative_scan import associative_scan
from rushlight._higher_order_ops.cond import cond
from rushlight._higher_order_ops.map import map
from rushlight._higher_order_ops.scan import scan
from rushlight._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]

__getattr__ = submodules_of(__name__)
