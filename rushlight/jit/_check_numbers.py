"""The types of arithmetic on numbers, and of Python's built-in functions of them."""

from __future__ import annotations

import ast

from rushlight.jit import _types as t

__all__ = ["NUMERIC", "of_builtin", "of_operator"]

NUMERIC = (t.INT, t.FLOAT, t.COMPLEX, t.NUMBER, t.BOOL)
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_SHIFTS = (ast.LShift, ast.RShift)


def of_operator(op, sides):
    """What an operator gives of two numbers: powers and quotients are floats, truth values count as whole
    numbers."""
    if t.NUMBER in sides or t.COMPLEX in sides:
        return (
            t.COMPLEX if t.NUMBER not in sides and isinstance(op, (ast.Add, ast.Sub, ast.Mult)) else t.UNKNOWN
        )
    if isinstance(op, (ast.Pow, ast.Div)):
        return t.FLOAT
    if t.FLOAT in sides:
        return t.UNKNOWN if isinstance(op, (*_BITS, *_SHIFTS)) else t.FLOAT
    return t.BOOL if sides == (t.BOOL, t.BOOL) and isinstance(op, _BITS) else t.INT


def of_builtin(name, given):
    """What a built-in function of Python gives of numbers, or of lists of them; UNKNOWN of others."""
    real = (t.INT, t.FLOAT, t.BOOL)
    if not given or not all(kind is not None and kind.known for kind in given):
        return t.UNKNOWN
    listed = len(given) == 1 and given[0].kind == "List" and given[0].args[0] in real
    parts = given[0].args if listed else given
    if not all(kind in real for kind in parts):
        return t.UNKNOWN
    if name in ("round", "pow") and not listed and len(parts) == (1 if name == "round" else 2):
        return t.FLOAT
    whole = t.FLOAT if t.FLOAT in parts else t.INT
    if name in ("max", "min") and len(parts) == (1 if listed else 2):
        return t.BOOL if all(kind == t.BOOL for kind in parts) else whole
    if name == "abs" and not listed or name == "sum" and listed:
        return whole
    if name == "divmod" and not listed and len(parts) == 2:
        return t.tuple_of((whole, whole))
    return given[0] if name == "sorted" and listed else t.UNKNOWN
