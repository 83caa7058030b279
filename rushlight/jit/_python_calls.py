"""Functions that stay Python in scripts: what they give is checked against what they declare."""

import functools
import types

from rushlight.jit._call_check import converted

__all__ = ["in_script"]


def in_script(function, method=False):
    """What a function that is not compiled is in scripts, where one marked unused cannot be called."""
    if getattr(function, "_torchscript_modifier", None) != "ignore":
        return getattr(function, "_in_script", function)
    if not isinstance(function, types.FunctionType):
        return function
    declared: list = []  # found out by the first call: types may be defined later

    @functools.wraps(function)
    def checked(*args, **kwargs):
        if not declared:
            declared.append(_declared(function, method))
        result = function(*args, **kwargs)
        return result if declared[0] is None else _checked(result, declared[0])

    return checked


def _declared(function, method):
    from rushlight.jit.frontend import schema_of_function

    try:
        kind = schema_of_function(function, method).returns
    except (OSError, RuntimeError):  # without source, or of types that scripts do not have
        return None
    return kind if kind.known else None


def _checked(result, kind):
    try:
        return converted(result, kind)
    except TypeError:
        raise RuntimeError(
            f"expected value of type {kind} for return value but instead got value of type "
            f"{type(result).__name__}.\nValue: {result}"
        ) from None
