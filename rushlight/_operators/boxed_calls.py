"""Calls of ``torch.ops`` whose arguments the operators' parser refuses.

These calls have rules of their own in PyTorch: any sequence is a list, bools and ints stand for each other,
and what fits no schema is a ``RuntimeError`` that shows it. All this is looked at only after a call failed.
"""

from collections.abc import Sequence

import rushlight as torch

__all__ = ["call_again"]

_NUMBERS = (bool, int, float, complex)


class _Refused(Exception):
    """Why a call does not fit a schema, in PyTorch's words."""


class _Other(Exception):
    """A value is of another type than its parameter."""


def _converted(type, value, takes_numbers):
    """The value as the parameter's type takes it; `_Other` where it does not."""
    text = str(type)
    if text.endswith("?"):
        return None if value is None else _converted(type.getElementType(), value, takes_numbers)
    if hasattr(value, "__torch_function__") and not isinstance(value, torch.Tensor):
        return value  # it answers for itself
    if text.endswith("[]"):
        return _converted_list(type, value, takes_numbers)
    if text in ("float", "int") and isinstance(value, torch.Tensor):
        return _number(value, float if text == "float" else int)
    if text == "Tensor":
        fits = value is None or isinstance(value, (torch.Tensor, *(_NUMBERS if takes_numbers else ())))
    elif text == "int":
        value = int(value) if isinstance(value, bool) else value
        fits = not isinstance(value, (float, complex, str)) and hasattr(value, "__index__")
    elif text == "bool":
        value = bool(value) if isinstance(value, int) else value
        fits = isinstance(value, bool) or hasattr(value, "__bool__")
    elif text in ("float", "Scalar"):
        fits = hasattr(value, "__float__") or isinstance(value, complex)
    elif text == "str":
        fits = isinstance(value, str)
    else:
        fits = True  # dtypes, devices and what else the parser knows
    if not fits:
        raise _Other
    return value


def _number(tensor, kind):
    """The only element of a tensor, as a number of this kind."""
    if tensor.numel() != 1:
        raise _Other
    return kind(tensor.item())


def _converted_list(type, value, takes_numbers):
    if isinstance(value, (str, torch.Tensor)) or not isinstance(value, Sequence):
        raise _Other
    element = type.getElementType()
    items = [_converted(element, item, takes_numbers) for item in value]
    same = isinstance(value, (list, tuple)) and all(a is b for a, b in zip(items, value))
    return value if same else items


def _checked(overload, position, argument, value):
    if argument.N and isinstance(value, int):
        return value  # one number for all
    takes_numbers = not overload._defined_in_python
    try:
        return _converted(argument.type, value, takes_numbers)
    except _Other:
        wanted = argument.type.annotation_str
        raise _Refused(
            f"{overload._qualified_op_name}() Expected a value of type '{wanted}' for argument "
            f"'{argument.name}' but instead found type '{type(value).__name__}'.\nPosition: {position}\n"
            f"Value: {value!r}\nDeclaration: {overload._schema}\n"
            f"Cast error details: Unable to cast {value} to {wanted}"
        ) from None


def _fitted(overload, args, kwargs):
    """The arguments as the overload takes them, or `_Refused`."""
    schema, name = overload._schema, overload._qualified_op_name
    arguments = schema.arguments
    count = len(args) + len(kwargs)
    if count > len(arguments):
        raise _Refused(
            f"{name}() expected at most {len(arguments)} argument(s) but received {count} argument(s). "
            f"Declaration: {schema}"
        )
    positional = sum(not a.kwarg_only for a in arguments)
    if len(args) > positional:
        raise _Refused(
            f"{name}() takes {positional} positional argument(s) but {len(args)} was/were given.  "
            f"Declaration: {schema}"
        )
    fitted = [_checked(overload, i, a, value) for i, (a, value) in enumerate(zip(arguments, args))]
    named = {}
    for i, argument in enumerate(arguments[len(args) :], len(args)):
        if argument.name in kwargs:
            named[argument.name] = _checked(overload, i, argument, kwargs[argument.name])
        elif not argument.has_default_value():
            raise _Refused(f"{name}() is missing value for argument '{argument.name}'. Declaration: {schema}")
    for key in kwargs:
        if key in named:
            continue
        if all(argument.name != key for argument in arguments):
            raise _Refused(f"Unknown keyword argument '{key}' for operator '{name}'. Schema: {schema}")
        raise _Refused(
            f"Argument '{key}' specified both as positional and keyword argument. Schema: {schema}"
        )
    return fitted, named


def _no_match(refusals):
    if len(refusals) == 1:
        return RuntimeError(refusals[0])
    texts = "".join(f"{text}\n\n" for text in refusals)
    return RuntimeError(f"Overloaded torch operator invoked from Python failed to match any schema:\n{texts}")


def _fitting(overloads, args, kwargs):
    """The first overload that takes the arguments, and these as it takes them."""
    refusals = []
    for overload in overloads:
        try:
            return overload, *_fitted(overload, args, kwargs)
        except _Refused as refused:
            refusals.append(str(refused))
    raise _no_match(refusals)


def call_again(overloads, args, kwargs, error):
    """The result of a call that failed with a `TypeError`, where its arguments can be converted. Otherwise
    raises as PyTorch does, or the error itself if the arguments were in order."""
    overload, fitted, named = _fitting(overloads, args, kwargs)
    same = all(a is b for a, b in zip(fitted, args)) and all(named[k] is v for k, v in kwargs.items())
    if same:
        raise error
    return overload._op(*fitted, **named)


def _jit_resolve_packet(name, *args, **kwargs):
    """The name of the overload that takes the arguments."""
    namespace, _, opname = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), opname)
    return _fitting([getattr(packet, key) for key in packet.overloads()], args, kwargs)[0]._overloadname
