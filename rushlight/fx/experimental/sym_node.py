"""What stands behind symbolic numbers: `SymNode`, and the operations on them by name."""

import math
import operator

import rushlight as torch
from rushlight._subclasses.size_numbers import SymNode

__all__ = ["SymNode", "method_to_operator", "sym_sqrt"]

_FUNCTIONS = {
    "ceil": math.ceil,
    "floor": math.floor,
    "trunc": math.trunc,
    "round": round,
    **{name: getattr(torch, name) for name in ("sym_float", "sym_ite", "sym_max", "sym_min", "sym_not")},
}


def method_to_operator(method):
    """The function of numbers that a method's name stands for."""
    if method in _FUNCTIONS:
        return _FUNCTIONS[method]
    return getattr(operator, f"{method}_" if method in ("and", "or") else method)


def sym_sqrt(a):
    """The square root of a number that may be symbolic."""
    return torch._sym_sqrt(a)  # type: ignore[attr-defined]
