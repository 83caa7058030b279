"""What records say of operators: for those who meet operators by name, and of one call's arguments."""

import functools

from rushlight import _C

__all__ = ["argument", "gives_a_view", "layers", "names_of", "unmarked_writes"]


@functools.cache
def _overloads():
    found: dict = {}
    for record in _C._operator_records():
        found.setdefault(record["name"], []).append(record["traits"])
    return found


def names_of(fits):
    """The names of operators with an overload for which ``fits(traits)`` holds."""
    return frozenset(name for name, overloads in _overloads().items() if any(map(fits, overloads)))


@functools.cache
def layers():
    """Names of operators with a constant weight: {name: (input, weight, bias or -1, whether [in, out])}."""
    records = (r for r in _C._operator_records() if r["traits"].layer and not r["overload"])
    return {f"{r['space']}::{r['name']}".removeprefix("::"): r["traits"].layer for r in records}


def argument(op, position, args, kwargs):
    """What a call gives for a parameter, or the parameter's default."""
    if position < len(args):
        return args[position]
    parameter = op._schema.arguments[position]
    return kwargs.get(parameter.name, parameter.default_value)


def unmarked_writes(op, args, kwargs):
    """Positions of arguments that a call writes to unmarked by the schema: running statistics."""
    traits = op.traits
    if not traits.writes_unmarked:
        return []
    if traits.writes_where >= 0 and not argument(op, traits.writes_where, args, kwargs):
        return []
    marked = (i for i in range(len(op._schema.arguments)) if traits.writes_unmarked >> i & 1)
    return [i for i in marked if argument(op, i, args, kwargs) is not None]


def gives_a_view(op):
    """Whether an operator's result is one view of its first operand."""
    returns = op._schema.returns
    return op.traits.aliasing == "view" and len(returns) == 1 and str(returns[0].type) == "Tensor"
