"""What a trace takes: tensors, and lists, dictionaries and tuples of them. A number would be a constant of
the trace, whatever it is called with afterwards, so it is refused."""

import rushlight
from rushlight.jit import _types as t
from rushlight.jit._annotations import python_type, value_type
from rushlight.nn import Module

__all__ = ["check_inputs"]

_FOLLOWED = "Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors can be traced"
_BY_NAME = "Only tensors or (possibly nested) dict or tuples of tensors can be inputs to traced functions."


def check_inputs(args, kwargs):
    """Raise if an example input has no tensors in it to follow."""
    try:
        kinds = [_type(value) for value in args]
        named = {name: _type(value) for name, value in kwargs.items()}
    except _NoTypeError as error:
        raise RuntimeError(f"Tracer cannot infer type of {args or kwargs}\n:{error}") from None
    if not all(map(_is_followed, kinds)):
        raise RuntimeError(f"Type '{t.tuple_of(kinds)}' cannot be traced. {_FOLLOWED}")
    for kind in named.values():
        if not _is_followed(kind):
            raise RuntimeError(f"{_BY_NAME} Got {kind}")


class _NoTypeError(Exception):
    """A value that has no one type; the text says why."""


def _type(value):
    if isinstance(value, list):
        if not value:
            raise _NoTypeError("List trace inputs must have elements")
        return t.list_of(_common(value, "List inputs to traced functions must have consistent element type"))
    if isinstance(value, dict):
        if not value:
            raise _NoTypeError("Dictionary inputs must have entries")
        said = "Dictionary inputs to traced functions must have consistent type"
        return t.dict_of(_common(value, said), _common(value.values(), said))
    if type(value) is tuple:
        return t.tuple_of([_type(part) for part in value])
    if isinstance(value, Module):
        raise _NoTypeError("Cannot infer concrete type of torch.nn.Module")
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return python_type(type(value)) or t.tuple_of([_type(part) for part in value])
    if hasattr(type(value), "__torch_function__"):
        return t.TENSOR
    kind = value_type(value)
    if not kind.known and not isinstance(value, (rushlight.ScriptObject, rushlight.Generator)):
        raise _NoTypeError(
            "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs "
            f"or outputs of traced functions, but instead got value of type {type(value).__name__}."
        )
    return kind


def _common(values, said):
    first, *others = map(_type, values)
    for kind in others:
        unified = t.unify(first, kind)
        if unified is None:
            raise _NoTypeError(f"{said}. Found {first} and {kind}")
        first = unified
    return first


def _is_followed(kind):
    if kind.kind in ("Dict", "List", "Tuple", "NamedTuple"):
        return all(map(_is_followed, kind.args[-1:] if kind.kind == "Dict" else kind.args))
    return kind == t.TENSOR or not kind.known
