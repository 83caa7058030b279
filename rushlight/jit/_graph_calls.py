"""The operands of calls in graphs: in the order of what is called, with what stands between filled in."""

import ast
import functools
import inspect

from rushlight.jit._operator_match import operator_schemas
from rushlight.nn import functional

__all__ = ["functional_call", "operands"]


def functional_call(name, node):
    """(name of the operator, operands) of a call of `torch.nn.functional`: `inplace` stands in the name."""
    function = getattr(functional, name, None)
    named = _parameters(function)
    given = None if named is None else _in_order(named, node, ())
    if given is None:
        return name, _as_written(node)
    if "inplace" in named:
        at = list(named).index("inplace")
        flag = given.pop(at) if at < len(given) else ast.Constant(False)
        if not isinstance(flag, ast.Constant):
            return name, _as_written(node)
        if flag.value:
            name += "_"
    return name, given


def operands(name, node, own=()):
    """The operands of a call of an operator; ``own`` are before the call's: the tensor of a method."""
    if not node.keywords:
        return _as_written(node)
    for schema in operator_schemas(name):
        named = {a.name: a.default_value if a.has_default_value() else _NO_DEFAULT for a in schema.arguments}
        given = _in_order(named, node, own)
        if given is not None:
            return given
    return _as_written(node)


def _as_written(node):
    return [*node.args, *(k.value for k in node.keywords)]


_NO_DEFAULT = object()


@functools.cache
def _parameters(function):
    """name -> default; None of what tells no parameters."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        return None
    return {p.name: _NO_DEFAULT if p.default is p.empty else p.default for p in found}


def _in_order(named, node, own):
    """The operands up to the last one that is given; None where the call does not fit."""
    words = {k.arg: k.value for k in node.keywords}
    plain = [*own, *node.args]
    names = list(named)
    if len(plain) > len(names) or any(word not in names[len(plain) :] for word in words):
        return None
    found = list(plain)
    last = max((names.index(word) for word in words), default=-1)
    for name in names[len(plain) : last + 1]:
        value = words.get(name)
        if value is None and (value := _literal(named[name])) is None:
            return None
        found.append(value)
    return found[len(own) :]


def _literal(value):
    if value is None or type(value) in (bool, int, float, str):
        return ast.Constant(value)
    if isinstance(value, (list, tuple)) and all(type(v) is int for v in value):
        return ast.List([ast.Constant(v) for v in value], ast.Load())
    return None
