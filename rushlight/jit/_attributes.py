"""What a scripted module's attributes are declared to be, and which declarations scripts do not follow."""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
import warnings

from rushlight.jit import _types as t
from rushlight.jit._annotations import python_type
from rushlight.jit._decorations import Attribute
from rushlight.nn import Module

__all__ = ["check_initialized", "constants_of", "declared_types", "take_attributes", "warn_of_annotations"]

_WARNING = (
    "The TorchScript type system doesn't support instance-level annotations on empty non-base types in "
    "`__init__`. Instead, either 1) use a type annotation in the class body, or 2) wrap the type in "
    "`torch.jit.Attribute`."
)


def check_initialized(module):
    if "_parameters" not in module.__dict__:
        name = type(module).__name__
        raise RuntimeError(f"'{name}' has not been initialized, did you forget to call 'super()'?")


def declared_types(classes):
    """Attribute -> type, of what the bodies of these classes, base first, annotate."""
    found = {}
    for cls in classes:
        written = vars(cls).get("__annotations__", {})
        if any(isinstance(a, str) for a in written.values()):
            try:
                written = typing.get_type_hints(cls)
            except Exception:  # annotations may name what is not there
                continue
        for name, annotation in written.items():
            try:
                found[name] = python_type(annotation) or t.UNKNOWN
            except (RuntimeError, ValueError, AssertionError):
                found[name] = t.UNKNOWN
    return found


def constants_of(cls):
    """Names of the attributes that a class of modules says are constant: `Final`, or in `__constants__`."""
    found = set()
    for base in cls.__mro__:
        found.update(vars(base).get("__constants__", ()))
        for name, said in vars(base).get("__annotations__", {}).items():
            text = said if isinstance(said, str) else ""
            if (
                said is typing.Final
                or typing.get_origin(said) is typing.Final
                or "Final" in text.partition("[")[0]
            ):
                found.add(name)
    return found


def take_attributes(state, types):
    """Put the values of `torch.jit.Attribute` in its place, and note their types. Lists, dictionaries and
    tuples are copied: what a script writes to them, the module that it was made of does not see."""
    for name, value in list(state.items()):
        if isinstance(value, Attribute):
            types[name] = python_type(value.type) or t.UNKNOWN
            value = value.value
        if name not in _TABLES:
            state[name] = _copied(value)


_TABLES = frozenset(Module().__dict__)


def _copied(value):
    """A container, and those in it, as new ones; all else as it is."""
    if type(value) in (list, tuple):
        return type(value)([_copied(part) for part in value])
    if type(value) is dict:
        return {key: _copied(part) for key, part in value.items()}
    return value


def warn_of_annotations(cls):
    """Warn of what ``__init__`` annotates and leaves empty: its type is not known in scripts."""
    init = vars(cls).get("__init__")
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(init)))
    except (OSError, TypeError, SyntaxError):
        return
    known = vars(cls).get("__annotations__", {})
    for node in ast.walk(tree):
        name, annotation, value = _annotated(node)
        if name is not None and name not in known and _is_empty(annotation, value):
            warnings.warn(_WARNING, UserWarning, stacklevel=2)


def _annotated(node):
    """Name, annotation and value of ``self.name: annotation = value`` and of what says it by `annotate`."""
    target: ast.expr
    annotation: ast.expr | None
    if isinstance(node, ast.AnnAssign):
        target, annotation, value = node.target, node.annotation, node.value
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
        if ast.unparse(node.value.func) not in ("torch.jit.annotate", "jit.annotate", "annotate"):
            return None, None, None
        target = node.targets[0]
        annotation, value = node.value.args if len(node.value.args) == 2 else (None, None)
    else:
        return None, None, None
    if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
        return None, None, None
    return target.attr, annotation, value


def _is_empty(annotation, value):
    if not isinstance(annotation, ast.Subscript):
        return False
    kind = ast.unparse(annotation.value).rpartition(".")[2].lower()
    if kind == "list":
        return isinstance(value, ast.List) and not value.elts
    if kind == "dict":
        return isinstance(value, ast.Dict) and not value.keys
    return kind == "optional" and isinstance(value, ast.Constant) and value.value is None
