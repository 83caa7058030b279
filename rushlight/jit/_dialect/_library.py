"""The library's functions and layers in archives: as operators where one does the same, else by the texts of
`_functions` and `_layers`, which are scripts over operators."""

from __future__ import annotations

import ast
import functools
import types

import rushlight
from rushlight._command.names import is_own
from rushlight.jit import _operator_match
from rushlight.jit._dialect._static import UNKNOWN_VALUE
from rushlight.jit._dialect._text import Unwritable
from rushlight.jit._graph_calls import _in_order, _parameters
from rushlight.jit._library import own_module
from rushlight.jit._types import Argument
from rushlight.jit.frontend import FrontendError, script_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["functional_text", "layer_unit", "library_function"]


def library_function(name: str, value: Any) -> Any:
    """The unit of a function of the library that no operator stands for; None of others."""
    from rushlight.jit._dialect import _attention, _functions, _losses

    home, _, short = name.rpartition(".")
    if home.startswith("torch.nn.") or home in ("torch", "torch.functional"):
        written = next((vars(m)[short] for m in (_functions, _losses, _attention) if short in vars(m)), None)
        if isinstance(written, types.FunctionType) and own_module(written) in _TEXTS:
            return _unit(written)
    if home == "torch.nn.functional" and _schema_for(short, getattr(value, "__wrapped__", value)) is not None:
        return None
    if isinstance(value, types.FunctionType) and is_own(own_module(value)) and home.count(".") > 1:
        unit = _unit(value)
        if any(
            a.type.kind == "Inferred" and a.default is not Argument.REQUIRED for a in unit.schema.arguments
        ):
            raise Unwritable(f"{name}, which does not say the types of its arguments")
        return unit
    return None


_TEXTS = tuple(f"rushlight.jit._dialect.{name}" for name in ("_functions", "_losses", "_attention"))


@functools.cache
def _unit(function: Any) -> Any:
    try:
        return script_function(function, {})
    except (FrontendError, RuntimeError, OSError, TypeError) as error:
        raise Unwritable(f"{function.__name__} of the library ({error})") from None


@functools.cache
def _method_unit(function: Any) -> Any:
    return script_function(function, {}, True)


def layer_unit(module: Any, name: str) -> Any:
    """The unit of a method of a layer whose own Python scripts have no words for; None of others."""
    from rushlight.jit._dialect import _attention, _layers

    base = getattr(type(module), "_library_base", None)
    for cls in base.__mro__ if base is not None else ():
        for texts in (_layers, _attention):
            written = getattr(texts, f"{cls.__name__}_{name}", None)
            if written is not None and is_own(own_module(cls), "nn"):
                return _method_unit(written)
    return None


def _schema_for(short: str, function: Any) -> Any:
    """The operator's schema whose arguments are those of a function of `torch.nn.functional`."""
    named = _parameters(function)
    if named is None:
        return None
    wanted = [name for name in named if name not in ("inplace", "out")]
    for schema in _operator_match.operator_schemas(short):
        names = [a.name for a in schema.arguments if not a.is_out]
        if not wanted or not names:
            continue
        if names[1 : len(wanted)] == wanted[1:] and wanted[0] in ("input", "self", "query", "x1", names[0]):
            return schema
    return None


def functional_text(writer: Any, node: ast.Call, short: str) -> str:
    """A call of `torch.nn.functional` as one of an operator."""
    function = getattr(rushlight.nn.functional, short, None)
    named = _parameters(function)
    schema = None if named is None else _schema_for(short, function)
    if schema is None:
        raise Unwritable(f"torch.nn.functional.{short} in {writer.unit.name}")
    given = _in_order(named, node, ())
    if given is None:
        raise Unwritable(f"a call of torch.nn.functional.{short} in {writer.unit.name}")
    if "inplace" not in named or list(named).index("inplace") >= len(given):
        texts = [_argument(writer, part, a) for part, a in zip(given, schema.arguments, strict=False)]
        return f"torch.{short}({', '.join(texts)})"
    flag = given.pop(list(named).index("inplace"))
    known = writer.constant(flag)
    texts = list(map(writer.simple if known is UNKNOWN_VALUE else writer.size_text, given))
    arguments = ", ".join(texts)
    if known is UNKNOWN_VALUE:
        return f"torch.{short}_({arguments}) if {writer.operand(flag)} else torch.{short}({arguments})"
    return f"torch.{short}{'_' if known else ''}({arguments})"


def _argument(writer: Any, part: ast.expr, argument: Any) -> str:
    """An argument; None as the step of a window is an empty list for operators."""
    if argument.name == "stride" and writer.constant(part) is None:
        return "annotate(List[int], [])"
    text = writer.size_text(part)
    return f"{argument.name}={text}" if argument.kwarg_only else text
