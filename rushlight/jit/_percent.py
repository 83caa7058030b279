"""`"%s" % x` in scripts: without flags, widths and digits, numbers as C++'s `int` and `float`."""

import re
import struct

from rushlight.jit._value_text import text_of

_SPECIFIER = re.compile(r"%(.?)", re.DOTALL)
_KNOWN = "sdiceEfF"
_LOWEST = -(2**31)  # what a float that is no number of 32 bits becomes
_NAMES = {str: "String", type(None): "None", list: "GenericList", dict: "GenericDict", tuple: "Tuple"}


def percent(text, values):
    """``text % values`` as scripts compute it."""
    given = values if isinstance(values, tuple) else (values,)
    wanted = [match[1] for match in _SPECIFIER.finditer(text) if match[1] != "%"]
    if "" in wanted:
        raise RuntimeError("Incomplete format specifier")
    for i, letter in enumerate(wanted):
        if i >= len(given):
            raise RuntimeError(f"Too few arguments for format string: {text}")
        _check(letter, given[i])
    if len(wanted) < len(given):
        raise RuntimeError(f"Too many arguments for format string: {text}")
    pairs = zip(wanted, given, strict=True)
    return text % tuple(_given(letter, value) for letter, value in pairs)


def _given(letter, value):
    if letter == "s":
        return text_of(value)
    if letter in "di" and type(value) is float:
        return int(value) if abs(value) < 2.0**31 else _LOWEST
    return _single(float(value)) if letter in "eEfF" else value


def _single(value):
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return value * float("inf")


def _check(letter, value):
    if letter not in _KNOWN:
        raise RuntimeError(f"The specifier %{letter} is not supported in TorchScript format strings")
    if letter == "s":
        return
    number = isinstance(value, (bool, int, float)) or hasattr(type(value), "__float__")
    if letter == "c" and not (isinstance(value, int) or isinstance(value, str) and len(value) == 1):
        raise RuntimeError(f"%c requires an int or char for formatting, but got {_name(value)}")
    if letter != "c" and not number:
        raise RuntimeError(f"%{letter} requires a number for formatting, but got {_name(value)}")


def _name(value):
    return _NAMES.get(type(value), type(value).__name__)
