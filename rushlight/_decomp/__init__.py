"""Operators expressed by others: the tables that exporters and back ends take operators apart by."""

import functools

from rushlight import _C
from rushlight._command.submodules import submodules_of
from rushlight._ops import _FUNCTIONAL, OpOverload, _built_in, _defined, _overload, _shown_extensions

from . import decompositions as _tensors  # noqa: F401 (they fill the table)
from . import decompositions_nn as _layers  # noqa: F401
from ._registry import (
    _overloads,
    decomposition_table,
    global_decomposition_table,
    register_decomposition,
)

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "global_decomposition_table",
    "register_decomposition",
    "remove_decompositions",
]


def get_decompositions(aten_ops, type="post_autograd"):
    """Those entries of the global table that take apart these operators; others are left out."""
    table = global_decomposition_table[type]
    return {overload: table[overload] for op in aten_ops for overload in _overloads(op) if overload in table}


def remove_decompositions(decompositions, aten_ops):
    """Take operators out of a table."""
    for op in aten_ops:
        for overload in _overloads(op):
            decompositions.pop(overload, None)


def is_composite(op):
    """Whether an operator is written in others, so that it leaves no step of its own in a trace."""
    return isinstance(op, OpOverload) and op.traits.family == "composite" and not op._schema.is_mutable


class Expansion:
    """The decomposition of a composite: to run it, whose parts are then recorded."""

    def __init__(self, op):
        self.op, self.__name__ = op, op.__name__

    def __call__(self, *args, **kwargs):
        return self.op(*args, **kwargs)


def _composites():
    """Operators that run as others here and are none of PyTorch's core."""
    for table in (_built_in(), _defined):
        for name, overloads in table.get("aten", {}).items():
            for overload, entry in overloads.items():
                if entry.form == _FUNCTIONAL and is_composite(_overload("aten", name, overload)):
                    yield _overload("aten", name, overload)


def _composites_of_programs():
    """Operators that a program wrote in others: those without a step of their own, as those of C++ have."""
    for namespace, names in _defined.items():
        for name, overloads in names.items():
            for overload, entry in overloads.items():
                if namespace == "aten" or entry.index in _shown_extensions:
                    continue
                overload_of = _overload(namespace, name, overload)
                # One with rules of its own is a step, though one kernel serves all devices.
                if overload_of.traits.family == "composite" and _has_parts(entry):
                    yield overload_of


def _has_parts(entry):
    return _C._get_operator_kernel(entry.index, "composite") is not None


@functools.cache
def _expanding():
    from .core import CORE_COMPOSITES

    return {op: Expansion(op) for op in _composites() if op not in CORE_COMPOSITES}


def core_aten_decompositions():
    """A table that leaves operators of the core ATen set, as far as decompositions are known."""
    from rushlight.export.decomp_utils import CustomDecompTable

    return CustomDecompTable()


def default_table():
    """{operator: function} of `core_aten_decompositions`."""
    from .core import CORE_COMPOSITES

    table = {**_expanding(), **{op: Expansion(op) for op in _composites_of_programs()}}
    table.update({op: fn for op, fn in decomposition_table.items() if op not in CORE_COMPOSITES})
    return table


__getattr__ = submodules_of(__name__)
