"""The text of functions from files: it may name the library and its own file, and nothing else."""

import ast
import builtins
import cmath
import enum
import math
import types
import typing
import warnings
from typing import Any

import rushlight
from rushlight._command.names import is_own
from rushlight.jit._library import is_library
from rushlight.jit._scripted_class import known_record, record_of
from rushlight.jit._source import Source
from rushlight.jit._syntax import check_syntax
from rushlight.jit.frontend import _BUILTINS, _EXCEPTIONS, Unit, _local_names, replacement

__all__ = ["unit_from_source"]


def unit_from_source(name, source, functions, filename="<torch_script archive>"):
    """The unit of a function's text from a file: it may name the library, and ``functions`` of the same
    file."""
    try:
        tree = ast.parse(source).body[0]
    except (SyntaxError, IndexError, ValueError, RecursionError) as error:
        raise RuntimeError(
            f"jit.load: the code of {name} cannot be read ({error}); is the file damaged?"
        ) from None
    if not isinstance(tree, ast.FunctionDef) or tree.decorator_list:
        raise RuntimeError(f"jit.load: the code of {name} is no function definition; is the file damaged?")
    unit = Unit(name, tree, {}, filename, source=Source.of_text(filename, source))
    check_syntax(unit)
    unit.tree = _ClosedResolver(unit, functions).visit(tree)
    return unit


class _ClosedResolver(ast.NodeTransformer):
    """Binds the dotted names of a text from a file, from closed lists; refuses whatever could reach
    further."""

    def __init__(self, unit, functions):
        self.unit, self.functions = unit, functions
        self.locals = _local_names(unit.tree)

    def visit_arg(self, node):
        node.annotation = _as_text(node.annotation)
        return node

    def visit_FunctionDef(self, node):
        node.returns = _as_text(node.returns)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node):
        node.annotation = _as_text(node.annotation)
        return self.generic_visit(node)

    def visit_Name(self, node):
        if node.id.startswith("__"):
            self.unit.refuse(f"jit.load: the name {node.id} may not be used", node)
        if node.id in self.locals or not isinstance(node.ctx, ast.Load):
            return node
        return self._bind(node.id, node)

    def visit_Attribute(self, node):
        dotted = _dotted(node)
        if dotted is not None and dotted.partition(".")[0] not in self.locals:
            if dotted not in self.functions and isinstance(self.functions.get(_dotted(node.value)), type):
                if node.attr.startswith("__"):
                    self.unit.refuse(f"jit.load: the attribute {node.attr} may not be used", node)
                return self._member(node)  # of a class of the file
            return self._bind(dotted, node)
        if node.attr.startswith("__") and node.attr != "__post_init__" or node.attr in _CLOSED_ATTRIBUTES:
            self.unit.refuse(f"jit.load: the attribute {node.attr} may not be used", node)
        return self.generic_visit(node)

    def _member(self, node):
        base = self._bind(_dotted(node.value), node.value)
        return ast.copy_location(ast.Attribute(value=base, attr=node.attr, ctx=node.ctx), node)

    def visit_Call(self, node):
        """Graphs read attributes whose names are no identifiers so: the name is a text in the call."""
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) == 2:
            module, name = node.args
            text = name.value if isinstance(name, ast.Constant) else None
            plain = isinstance(text, str) and not text.isidentifier() and not text.startswith("__")
            if plain and not node.keywords:
                self.unit.names["getattr"] = getattr
                node.args[0] = self.visit(module)
                return node
        return self.generic_visit(node)

    def _bind(self, dotted, node):
        if dotted in self.functions:
            value = self.functions[dotted]
        elif dotted in _BUILTINS - {"getattr", "type"} or dotted in _EXCEPTIONS:
            value = getattr(builtins, dotted)
        else:
            value = _library_value(dotted)
        if value is None:
            self.unit.refuse(f"jit.load: {dotted} is not something that a file may name", node)
        if isinstance(value, type) and (record := record_of(value)) is not None:
            dotted = record.name  # a class that lives may have the name that the file gives
        elif isinstance(value, enum.Enum):
            dotted = f"{known_record(type(value)).name}.{value.name}"
        self.unit.names[dotted] = replacement(dotted, value)
        return ast.copy_location(ast.Name(id=dotted, ctx=ast.Load()), node)


def _as_text(annotation):
    """An annotation as text, which says what it said and names nothing."""
    if annotation is None or isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation
    return ast.Constant(value=ast.unparse(annotation))


# What reaches from a value to the interpreter's inside, to files or to other processes.
_CLOSED_ATTRIBUTES = frozenset(
    """gi_frame gi_code f_globals f_locals f_builtins f_back func_globals tofile numpy storage untyped_storage
    apply_ map_ map2_ register_hook share_memory_ format_map mro""".split()
)


def _dotted(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return base and f"{base}.{node.attr}"
    return None


_STARTS = {"torch": rushlight, "math": math, "cmath": cmath, "typing": typing, "warnings": warnings}


def _library_value(dotted):
    """The library's function, type or constant of this name, if it is one that computes and nothing else."""
    top, *path = dotted.split(".")
    start = _STARTS.get(top)
    if start is None or any(part.startswith("_") for part in path[:-1]):
        return None
    if path and path[0] == "ops":
        return _custom_operator(path[1:]) if 3 <= len(path) <= 4 else None
    value = start
    for part in path:
        if not isinstance(value, types.ModuleType) or not hasattr(value, part):
            return None
        value = getattr(value, part)
    return value if is_library(value) else None


def _custom_operator(path):
    """An operator of ``torch.ops``, also of a library that the program loaded, or None."""
    found: Any = rushlight.ops
    for part in path:
        found = None if part.startswith("__") else getattr(found, part, None)
    if isinstance(found, types.FunctionType):  # operators of packed weights are written in Python
        return found if is_own(found.__module__, "ops.quantized", "ops.sparse") else None
    return found if isinstance(found, (rushlight._ops.OpOverload, rushlight._ops.OpOverloadPacket)) else None
