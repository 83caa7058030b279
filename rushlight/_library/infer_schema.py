"""An operator's schema from a Python function's annotations."""

import collections.abc
import inspect
import types
import typing
from typing import Sequence, Union, get_args, get_origin  # noqa: UP035

import rushlight as torch
from rushlight._command.names import show_from

__all__ = ["infer_schema"]


def _supported():
    """Annotation -> the schema's type. Optional of any, and sequences of some, are supported too."""
    return {
        torch.Tensor: "Tensor",
        int: "SymInt",
        float: "float",
        bool: "bool",
        str: "str",
        torch.types.Number: "Scalar",
        Union[int, float, bool, complex]: "Scalar",  # noqa: UP007
        Union[int, float, bool]: "Scalar",  # noqa: UP007
        torch.dtype: "ScalarType",
        torch.device: "Device",
    }


SUPPORTED_RETURN_TYPES = {
    torch.Tensor: "Tensor",
    list[torch.Tensor]: "Tensor[]",
    int: "SymInt",
    float: "float",
    bool: "bool",
    torch.types.Number: "Scalar",
}
_LISTS = {"Tensor", "SymInt", "float", "bool", "Scalar"}


def _is_optional(annotation):
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def _type_text(annotation):
    """The schema's type, or None."""
    table = _supported()
    if annotation in table:
        return table[annotation]
    if _is_optional(annotation):
        rest = tuple(a for a in get_args(annotation) if a is not type(None))
        inner = _type_text(rest[0] if len(rest) == 1 else Union[rest])  # noqa: UP007
        return None if inner is None else f"{inner}?"
    if get_origin(annotation) in (list, list, collections.abc.Sequence, Sequence):
        inner = _type_text(get_args(annotation)[0])
        return f"{inner}[]" if inner in _LISTS or inner == "Tensor?" else None
    return None


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema string of a function with type annotations, as ``torch.library.custom_op`` reads it.

    ``mutates_args`` names the arguments that the function writes to, or is "unknown": all tensors.
    """
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the "
            f"string 'unknown', got {mutates_args!r}."
        )
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)

    def fail(what):
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    parameters, starred = [], False
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            fail("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind == parameter.KEYWORD_ONLY and not starred:
            parameters.append("*")
            starred = True
        if parameter.annotation is parameter.empty:
            fail(f"Parameter {name} must have a type annotation.")
        parameters.append(_parameter(i, parameter, hints[name], mutates_args, fail))
    if mutates_args != "unknown":
        unknown = set(mutates_args) - set(signature.parameters)
        if unknown:
            fail(f"{unknown} in mutates_args were not found in the function's arguments.")
    if signature.return_annotation is signature.empty:
        fail("No return type annotation was provided. Please add one.")
    returns = _returns(hints["return"], fail)
    return f"{op_name or ''}({', '.join(parameters)}) -> {returns}"


def _parameter(position, parameter, annotation, mutates_args, fail):
    name = parameter.name
    kind = _type_text(annotation)
    if kind is None:
        if get_origin(annotation) in (tuple, tuple):
            fail(
                f"Parameter {name} has unsupported type {annotation}. Please use typing.List or "
                "typing.Sequence instead of tuple."
            )
        fail(
            f"Parameter {name} has unsupported type {annotation}. The valid types are: {list(_supported())}."
        )
    if mutates_args == "unknown" or name in mutates_args:
        if not kind.startswith("Tensor"):
            if mutates_args != "unknown":
                fail(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can "
                    "be mutated"
                )
        else:
            kind = f"Tensor(a{position}!){kind[len('Tensor') :]}"
    if parameter.default is parameter.empty:
        return f"{kind} {name}"
    return f"{kind} {name}={_default(parameter.default, name, fail)}"


def _default(value, name, fail):
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, torch.device):
        return f'"{value}"'
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    fail(
        f"Parameter {name} has an unsupported default value type {type(value)}. Please file an issue on "
        "GitHub "
        "so we can prioritize this."
    )


def _returns(annotation, fail):
    if annotation is None or annotation is type(None):
        return "()"
    if get_origin(annotation) in (tuple, tuple):
        kinds = [_return_type(a, fail) for a in get_args(annotation)]
        return f"({', '.join(kinds)})"
    return _return_type(annotation, fail)


def _return_type(annotation, fail):
    if get_origin(annotation) is list and get_args(annotation) == (torch.Tensor,):
        return "Tensor[]"  # also where it is written `typing.List`
    if annotation in SUPPORTED_RETURN_TYPES:
        return SUPPORTED_RETURN_TYPES[annotation]
    fail(f"Return has unsupported type {annotation}. The valid types are: {[*SUPPORTED_RETURN_TYPES]}.")


show_from("library", infer_schema)
