"""Which of the library's own names a script may use, and what they are called."""

import cmath
import functools
import inspect
import math
import types
import typing
import warnings

import rushlight
from rushlight import _C, _ops
from rushlight._command.names import is_own, own_name, public_name
from rushlight.jit._check_methods import TORCH_BUILTINS
from rushlight.jit._types import DTYPE_LIKE

_OPERATOR = type(_C._VariableFunctions.add)
_MODULES = ("nn.functional", "linalg", "fft", "special", "functional")
_HOMES = ("rushlight", *(f"rushlight.{path}" for path in _MODULES))  # what functions that compute belong to
OPERATORS = (_ops.OpOverload, _ops.OpOverloadPacket)  # by `torch.ops`, also those that programs register
_AWAITS = ("_awaitable", "_awaitable_wait", "_awaitable_nowait")
_JIT = ("is_scripting", "is_tracing", "annotate", "isinstance", "fork", "wait", "_unwrap_optional", *_AWAITS)
_TYPES = ("Tensor", "device", "dtype", "Size", "Generator", "no_grad", "enable_grad", "inference_mode")
# Functions of `torch` that answer questions or check, and are no operators.
_ANSWERS = (
    "is_grad_enabled is_autocast_enabled is_autocast_cpu_enabled get_default_dtype is_tensor "
    "is_floating_point "
    "is_complex numel _assert get_autocast_dtype result_type promote_types can_cast finfo iinfo manual_seed "
    "is_nonzero is_storage set_grad_enabled autocast"
).split()
# What looks like an operator and reaches beyond tensors.
_REFUSED = frozenset("from_file _load_global_deps save load compile".split())


def own_module(value):
    """The module that defines a value, by our name for it, also where the alias calls it torch's."""
    return own_name(getattr(value, "__module__", None) or "")


def _namespace(path):
    space = rushlight
    for part in path.split("."):
        space = getattr(space, part)
    return space


def class_name(cls):
    """The public path of one of the library's classes, by which a file names it.

    Raises:
        RuntimeError: it was made while the program ran, as classes of parametrized modules are.
    """
    module = own_module(cls)
    space, _, name = f"{module}.{cls.__qualname__}".rpartition(".")
    if getattr(_namespace(space.partition(".")[2]), name, None) is not cls:
        raise RuntimeError(
            f"jit.save: {name} is a class made while the program ran, which no file can name\n"
            "fix: call nn.utils.parametrize.remove_parametrizations first, or trace the module"
        )
    return f"{public_name(module)}.{cls.__qualname__}"


@functools.cache
def _functions():
    """name -> value for all that a script may name of the library."""
    found = {f"{m.__name__}.{n}": getattr(m, n) for m in (cmath, math) for n in dir(m) if n[0] != "_"}
    found.update(
        (f"typing.{n}", getattr(typing, n)) for n in ("List", "Dict", "Tuple", "Optional", "Union", "Any")
    )
    found["warnings.warn"] = warnings.warn
    for name in ("PackedSequence", *(n for n in rushlight.nn.utils.rnn.__all__ if "_sequence" in n)):
        found[f"torch.nn.utils.rnn.{name}"] = getattr(rushlight.nn.utils.rnn, name)
    found.update((f"torch.jit.{n}", getattr(rushlight.jit, n)) for n in _JIT)
    found.update((f"torch.{n}", getattr(rushlight, n)) for n in (*_TYPES, *_ANSWERS) if hasattr(rushlight, n))
    builtins = {"asarray", *TORCH_BUILTINS} - _REFUSED
    found.update((f"torch.{n}", getattr(rushlight, n)) for n in sorted(builtins) if hasattr(rushlight, n))
    found.update((f"torch.{n}", v) for n, v in vars(rushlight).items() if isinstance(v, DTYPE_LIKE))
    for path in _MODULES:
        space = _namespace(path)
        for name in dir(space):
            value = getattr(space, name, None)
            if name[0] != "_" and _computes(value):
                found.setdefault(f"torch.{path}.{name}", value)
    for name in dir(rushlight):
        if name not in _REFUSED and not name.startswith("__"):
            value = vars(rushlight).get(name) or getattr(rushlight, name, None)
            if _computes(value) and (isinstance(value, _OPERATOR) or name in rushlight._HOME_OF):
                found.setdefault(f"torch.{name}", value)
    return found


def _computes(value):
    if isinstance(value, _OPERATOR):
        return is_own(own_module(value))
    return inspect.isfunction(value) and own_module(value) in _HOMES


@functools.cache
def _names():
    return {id(value): name for name, value in reversed(_functions().items())}


def is_library(value):
    """Whether a script, also one from a file, may use this value of the library."""
    if id(value) in _names():
        return True
    return is_own(own_module(value)) and getattr(value, "_only_computes", False)


def library_name(value):
    """The dotted name of a function, type or constant of the library or of what a script may use; else
    None."""
    if isinstance(value, types.ModuleType):
        return None
    name = _names().get(id(value))
    if name is not None:
        return name
    if isinstance(value, OPERATORS):
        return f"torch.ops.{str(value).replace('::', '.')}"
    if getattr(value, "__module__", None) == "builtins" and isinstance(
        value, (type, types.BuiltinFunctionType)
    ):
        return value.__name__
    if isinstance(value, typing._SpecialForm):
        return f"typing.{value._name}"
    if isinstance(value, rushlight._ops.OpOverloadPacket):
        return f"torch.ops.{value._qualified_op_name.replace('::', '.')}"
    module = own_module(value)
    if callable(value) and is_own(module) and hasattr(value, "__qualname__"):
        return f"{public_name(module)}.{value.__qualname__}"
    return None
