"""Why scripts cannot use a value of Python, and what attributes must be that methods ask for."""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import types

import rushlight
from rushlight._command.names import is_own
from rushlight.jit._annotations import is_compiled_class, value_type
from rushlight.jit._attributes import constants_of
from rushlight.jit._call_check import converted
from rushlight.jit._check_values import declared_type
from rushlight.jit._graph_types import JitType
from rushlight.jit._interfaces import misfit
from rushlight.jit._library import library_name, own_module
from rushlight.jit._scripted_class import known_record, record_of
from rushlight.jit._types import DTYPE_LIKE, NONE
from rushlight.jit.frontend import FrontendError
from rushlight.nn import Module

__all__ = [
    "InferredType", "_jit_try_infer_type", "check_attributes", "check_constants", "is_convertible",
    "is_scripted_class", "unconvertible",
]  # fmt: skip

_VALUES = (
    bool, int, float, complex, str, bytes, type(None), rushlight.Tensor, rushlight.device, rushlight.Size,
    rushlight.Generator, rushlight.ScriptObject, enum.Enum, types.MethodType, *DTYPE_LIKE,
)  # fmt: skip
_CONSTANTS = (bool, int, float, complex, str, type(None), rushlight.device, *DTYPE_LIKE)


class InferredType:
    """What is known of a value's type: the type, or the reason why there is none."""

    def __init__(self, found):
        self._reason = found if isinstance(found, str) else None
        self._type = None if self._reason is not None else found

    def success(self):
        return self._type is not None

    def reason(self):
        return self._reason or ""

    def type(self):
        if self._type is None:
            raise RuntimeError(
                "Tried to get the type from an InferredType but the type is null. Reason: " + self.reason()
            )
        return self._type


def _jit_try_infer_type(obj):
    """The type that scripts give a value."""
    reason = unconvertible(obj)
    return InferredType(JitType(str(value_type(obj))) if reason is None else reason)


def is_convertible(value):
    """Whether a script can use this value of an attribute: with a type, as a part or as a function."""
    return isinstance(value, Module) or _is_function(value) or unconvertible(value) is None


def unconvertible(value):
    """Why a value has no type in scripts; None if it has one."""
    if isinstance(value, Module):
        scripted = hasattr(type(value), "_script_methods")
        return f"Cannot infer {'type of ScriptModule' if scripted else 'concrete type of torch.nn.Module'}"
    if isinstance(value, _VALUES) or hasattr(value, "_script_type"):
        return None
    if isinstance(value, tuple):
        return next(filter(None, map(unconvertible, value)), None)
    if isinstance(value, list):
        return _list_misfit(value)
    if isinstance(value, dict):
        return _dict_misfit(value)
    if is_scripted_class(type(value)):
        return None
    return (
        "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or "
        f"outputs of traced functions, but instead got value of type {type(value).__name__}."
    )


def _list_misfit(value):
    if not value:
        return "List trace inputs must have elements"
    for part in value:
        if (reason := unconvertible(part)) is not None:
            return f"Could not infer type of list element: {reason}"
    mixed = _mixed(value)
    return mixed and f"List inputs to traced functions must have consistent element type. {mixed}"


def _dict_misfit(value):
    if not value:
        return "Dictionary inputs must have entries"
    for part in (*value, *value.values()):
        if (reason := unconvertible(part)) is not None:
            return reason
    mixed = _mixed(value) or _mixed(value.values())
    return mixed and f"Dictionary inputs to traced functions must have consistent type. {mixed}"


def _mixed(values):
    """Which two types there are among values that must be of one, or None besides."""
    kinds = [kind for kind in dict.fromkeys(map(value_type, values)) if kind.known and kind != NONE]
    return f"Found {kinds[0]} and {kinds[1]}" if len(kinds) > 1 else None


def is_scripted_class(cls):
    """Whether scripts can use instances of this class of the program as they are."""
    if not is_compiled_class(cls):
        return False
    try:
        known_record(cls).compile()
    except (RuntimeError, FrontendError, OSError):
        return False
    return True


def _is_function(value):
    """Whether a script calls a value: another script, or a function of the library."""
    if hasattr(value, "_called_by_name"):
        return True
    of_python = isinstance(value, type) or getattr(value, "__module__", None) == "builtins"
    return library_name(value) is not None and (not of_python or value is rushlight.Tensor)


def check_attributes(made, unit, module, compiled):
    """Every attribute that a method asks of its module must be there, and of a type that a script can use.

    Args:
        made: what is scripted of `module`.
        compiled: compiles a function of the program.
    """
    for name, node in unit.attributes_needed(functools.partial(hasattr, made)).items():
        lacks = f"Module '{type(module).__name__}' has no attribute '{name}' "
        if name in type(made)._ignored:
            unit.refuse(f"{lacks}(This attribute was ignored during compilation.)", node)
        if not hasattr(made, name) or _is_of_class_alone(made, name):
            unit.refuse(lacks, node)
        value = made.__dict__.get(name)
        if (reason := _misfit(value, declared_type(made, name))) is not None:
            unit.refuse(reason, node)
        if isinstance(value, types.FunctionType) and library_name(value) is None:
            made.__dict__[name] = _function(lacks, value, compiled)
        elif not (isinstance(node.ctx, ast.Store) or is_convertible(value) or _says_its_type(made, name)):
            reason, kind = unconvertible(value), rushlight.typename(type(value))
            unit.refuse(
                f"{lacks}(This attribute exists on the Python module, but we failed to convert Python type: "
                f"'{kind}' to a TorchScript type. {reason}. Its type was inferred; try adding a type "
                "annotation for the attribute.)",
                node,
            )


def check_constants(made, cls):
    """What a program's class says is constant must be a number, text or the like, or a list of such."""
    for name in () if is_own(own_module(cls), "nn") else constants_of(cls):
        held = next((d for d in (made._parameters, made._buffers, made._modules) if name in d), None)
        for value in _parts(getattr(made, name, None)) if held is None else ():
            if not isinstance(value, _CONSTANTS):
                raise TypeError(
                    f"'{rushlight.typename(type(value))}' object in attribute '{cls.__name__}.{name}' is not "
                    "a valid constant.\nValid constants are:\n1. a nn.ModuleList\n2. a value of type "
                    f"{{{', '.join(map(rushlight.typename, _CONSTANTS))}}}\n3. a list or tuple of (2)\n"
                )


def _parts(value):
    """The values in lists and tuples."""
    return [v for part in value for v in _parts(part)] if isinstance(value, (list, tuple)) else [value]


def _misfit(value, said):
    """Why an object is no value of the type that is said, or which of its attributes is not of its own."""
    if value is not None and said is not None and said.kind == "Interface":
        return misfit(value, said.python)
    record = record_of(type(value)) if is_scripted_class(type(value)) else None
    for name, kind in record.attributes.items() if record is not None else ():
        if not kind.known or not hasattr(value, name):
            continue
        try:
            converted(getattr(value, name), kind)
        except TypeError as error:
            return f"Could not cast attribute '{name}' to type {kind}: {error}"
    return None


def _is_of_class_alone(made, name):
    """Whether an attribute stands in the body of a program's class, and is not said to be constant."""
    if any(name in made.__dict__[table] for table in ("_parameters", "_buffers", "_modules")):
        return False
    cls = getattr(type(made), "_python_class", type(made))
    member = inspect.getattr_static(cls, name, None)
    of_program = any(name in vars(c) for c in cls.__mro__ if not is_own(own_module(c)))
    plain = not callable(member) and not hasattr(type(member), "__get__")
    return of_program and plain and name not in made.__dict__ and name not in constants_of(cls)


def _says_its_type(made, name):
    """Whether a class says of which type an attribute is, or that it is constant."""
    said = declared_type(made, name)
    constants = constants_of(getattr(type(made), "_python_class", type(made)))
    return (said is not None and said.known) or name in constants


def _function(lacks, function, compiled):
    """A function that is an attribute of a module, compiled."""
    try:
        return compiled(function)
    except (FrontendError, RuntimeError) as error:
        raise RuntimeError(
            f"{lacks}(This function exists as an attribute on the Python module, but we failed to compile it "
            f"to a TorchScript function.\nThe error stack is reproduced here:\n\n{error})"
        ) from error
