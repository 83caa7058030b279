"""How rules for ONNX read the arguments of an operator."""

import functools
from typing import Any

__all__ = ["parse_args"]

_READERS: dict[str, Any] = {
    "v": lambda value: value,
    "i": int,
    "f": float,
    "b": bool,
    "s": str,
    "t": lambda value: value,
}


def _list_of(read):
    return lambda values: [read(value) for value in values]


_READERS |= {f"{kind}s": _list_of(read) for kind, read in _READERS.items()} | {"none": _READERS["v"]}


def parse_args(*arg_descriptors):
    """Decorates a rule ``(g, *args)``: each argument is read as "v" (a value), "i", "f", "b", "s", "t", or a
    list of them ("is", "fs", ...); None stays."""

    def decorate(rule):
        rule._arg_descriptors = arg_descriptors

        @functools.wraps(rule)
        def read(g, *args, **kwargs):
            if len(args) > len(arg_descriptors):
                raise AssertionError(
                    f"A mismatch between the number of arguments ({len(args)}) and their descriptors "
                    f"({len(arg_descriptors)}) was found at symbolic function '{rule.__name__}'."
                )
            values = [None if a is None else _READERS[kind](a) for a, kind in zip(args, arg_descriptors)]
            return rule(g, *values, **kwargs)

        return read

    return decorate
