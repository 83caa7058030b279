"""From what a program writes in annotations to the types of TorchScript, and the schema of a function."""

from __future__ import annotations

import ast
import builtins
import collections
import enum
import inspect
import types
import typing
import weakref

import rushlight
from rushlight._awaits import _Await
from rushlight._command.names import is_own
from rushlight.jit import _types as t
from rushlight.jit._call_check import converted
from rushlight.jit._executable import broadcast_length
from rushlight.nn import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Annotations", "python_type", "schema_of"]

_MISSING = object()
_BARE = {
    getattr(typing, name): (name, "contained types" if name == "Dict" else "a contained type", example)
    for name, example in {
        "List": "List[int]",
        "Tuple": "Tuple[int]",
        "Dict": "Dict[int, int]",
        "Optional": "Optional[int]",
    }.items()
}
_PLAIN = {
    float: t.FLOAT,
    complex: t.COMPLEX,
    int: t.INT,
    str: t.STR,
    bool: t.BOOL,
    typing.Any: t.ANY,
    None: t.NONE,
    type(None): t.NONE,
    rushlight.device: t.DEVICE,
    rushlight.dtype: t.INT,
    rushlight.Generator: t.GENERATOR,
}
_NAMES = {
    "Tensor": t.TENSOR,
    "int": t.INT,
    "float": t.FLOAT,
    "bool": t.BOOL,
    "str": t.STR,
    "complex": t.COMPLEX,
    "number": t.NUMBER,
    "None": t.NONE,
    "NoneType": t.NONE,
    "Any": t.ANY,
    "Device": t.DEVICE,
    "Generator": t.GENERATOR,
    "Stream": t.STREAM,
    "list": t.Type("list"),
    "tuple": t.Type("tuple"),
}
_BUILT = ("Tuple", "List", "Dict", "Optional", "Union", "Future", "Await", "RRef", "tuple", "list", "dict")


class Unresolved(Exception):
    """A part of an annotation that is no type of TorchScript."""


def plain_name(cls):
    """The name of a class by where it was defined."""
    module = getattr(cls, "__module__", "")
    module = "" if module == "__main__" else f"{module}."
    return f"{'' if module.startswith('__torch__.') else '__torch__.'}{module}{cls.__name__}"


_names: dict[str, Any] = {}  # name -> a weak reference to the class that has it
_mangled: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def qualified_name(cls):
    """The name of a class in scripts. Of classes of equal names that live, all but the first get another."""
    if cls in _mangled:
        return _mangled[cls]
    name, count = plain_name(cls), 0
    module = name.removesuffix(cls.__name__)
    while (holder := _names.get(name)) is not None and holder() is not None:
        name, count = f"{module}___torch_mangle_{count}.{cls.__name__}", count + 1
    _names[name], _mangled[cls] = weakref.ref(cls), name
    return name


def is_compiled_class(cls):
    """Whether scripts compile the methods of a class of the program."""
    return (
        not is_own(cls.__module__) and not hasattr(cls, "__torch_script_interface__") and may_be_compiled(cls)
    )


def may_be_compiled(cls):
    """Whether each method of a class has source to compile."""
    if issubclass(cls, (Module, tuple, list, Exception)) or cls.__module__ == "builtins":
        return False
    found = [getattr(cls, name, None) for name in vars(cls)]
    return all(hasattr(member, "__code__") for member in found if inspect.isroutine(member))


def python_type(value, where=lambda: ""):
    """The type that a value of Python stands for, None if for none."""
    if isinstance(value, typing.Hashable) and value in _PLAIN:
        return _PLAIN[value]
    origin, arguments = typing.get_origin(value), typing.get_args(value)
    if origin is None and isinstance(value, type):
        return _class_type(value, where)
    if value in _BARE:
        name, contained, example = _BARE[value]
        raise RuntimeError(
            f"Attempted to use {name} without {contained}. Please add {contained.rstrip('s')}, e.g. {example}"
        )
    if origin is tuple:
        parts = [] if arguments == ((),) else [python_type(a, where) for a in arguments]
        if None in parts:
            raise RuntimeError("Can not create tuple with None type")
        return t.tuple_of(parts)
    if origin is list:
        element = python_type(arguments[0], where)
        return element and t.list_of(element)
    if origin in (dict, collections.OrderedDict) and len(arguments) == 2:
        parts = [python_type(a, where) for a in arguments]
        for argument, part in zip(arguments, parts, strict=True):
            if part is None:
                raise ValueError(f"Unknown type annotation: '{argument}' at {where()}")
        return _dict_type(*parts)
    if origin in (typing.Union, types.UnionType):
        return _union_type(value, arguments, where)
    if isinstance(origin, type) and issubclass(origin, rushlight.futures.Future):
        return t.future_of(python_type(arguments[0], where) or t.UNKNOWN)
    if origin is _Await:
        return t.await_of(python_type(arguments[0], where) or t.UNKNOWN)
    if isinstance(origin, type) and origin.__name__ == "RRef":
        return t.UNKNOWN
    return None


_KEYS = (t.INT, t.FLOAT, t.COMPLEX, t.TENSOR, t.DEVICE, t.STR, t.BOOL, t.ANY, t.UNKNOWN)


def _dict_type(key, value):
    if key not in _KEYS and key.kind != "Enum":
        raise RuntimeError(
            f"Cannot create dict for key type '{key}', only int, float, complex, Tensor, device and "
            "string keys "
            "are supported"
        )
    return t.dict_of(key, value)


def _union_type(value, arguments, where):
    if set(arguments) == {int, float, complex}:
        return t.NUMBER
    parts = []
    for argument in arguments:
        part = python_type(argument, where)
        if part is None:
            shown = repr(value).replace("rushlight.", "torch.")
            raise AssertionError(
                f"Unsupported annotation {shown} could not be resolved because {argument!r} could not be "
                f"resolved. At\n{where()}"
            )
        parts.append(part)
    return t.union(parts)


def _class_type(cls, where):
    if issubclass(cls, rushlight.Tensor) or cls.__name__ == "Parameter":
        return t.TENSOR
    if issubclass(type(cls), type(rushlight.FloatTensor)) and issubclass(cls, rushlight.FloatTensor):
        return t.TENSOR
    if hasattr(cls, "__torch_script_interface__"):
        return t.Type("Interface", name=qualified_name(cls), python=cls)
    if issubclass(cls, rushlight.futures.Future):
        raise RuntimeError(
            "Attempted to use Future without a contained type. Please add a contained type, e.g. Future[int]"
        )
    if issubclass(cls, enum.Enum):
        return t.Type("Enum", name=plain_name(cls), python=cls)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        if any(isinstance(value, rushlight.Tensor) for value in cls._field_defaults.values()):
            raise RuntimeError(
                "Tensors are not supported as default NamedTuple fields. Their mutability could lead to "
                "potential memory aliasing problems"
            )
        hints = {}
        try:
            hints = typing.get_type_hints(cls)
        except Exception:  # annotations may name what is not there
            pass
        parts = [python_type(hints[f], where) or t.UNKNOWN if f in hints else t.TENSOR for f in cls._fields]
        return t.Type("NamedTuple", parts, qualified_name(cls), cls)
    if issubclass(cls, Module):
        return None
    if is_own(cls.__module__):
        return None if cls.__name__ in ("Size", "layout", "memory_format") else t.UNKNOWN
    return t.Type("Class", name=qualified_name(cls), python=cls) if is_compiled_class(cls) else None


class Annotations:
    """The annotations of one function, whose names come from where it was defined."""

    def __init__(self, unit, outside, evaluated=None):
        self.unit, self.evaluated = unit, evaluated or {}  # what Python made of annotations, by their text
        self.outside = outside  # None: a text from a file, whose words alone count

    def type_of(self, node):
        """The type that an annotation says; raises for what TorchScript does not know."""
        if self.outside is None:
            try:
                return self._read(node)
            except RuntimeError:
                return t.UNKNOWN
        value = self._value(node)
        if isinstance(node, ast.Subscript) and "BroadcastingList" in ast.unparse(node):
            value = _MISSING
        if value is not _MISSING:
            found = python_type(value, lambda: self.unit.source.shown(node))
            if found is not None and found.kind == "Enum":
                members_of_enum(value)
            if found is not None:
                return found
        return self._read(node)

    def _value(self, node):
        """What the annotation is in Python, if its names lead anywhere."""
        if self.outside is None:
            return _MISSING
        try:
            return self._evaluate(node)
        except KeyError:  # a name of the function around, which no closure keeps
            return self.evaluated.get(ast.unparse(node), _MISSING)
        except (LookupError, AttributeError, TypeError, ValueError):
            return _MISSING

    def _evaluate(self, node):
        if isinstance(node, ast.Name):
            for space in (self.unit.names, self.outside, vars(typing), vars(builtins)):
                if node.id in space:
                    return space[node.id]
            raise KeyError(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self._evaluate(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            base = self._evaluate(node.value)
            inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in inside):
                raise LookupError("text inside of a type")
            parts = tuple(map(self._evaluate, inside))
            return base[parts if isinstance(node.slice, ast.Tuple) else parts[0]]
        if isinstance(node, ast.Constant):
            if node.value is None:
                return None
            if isinstance(node.value, str):
                return self._evaluate(ast.parse(node.value, mode="eval").body)
        raise LookupError("no plain name")

    def _read(self, node):
        """A type by its own words: what the names of Python's say nothing about."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                inside = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                inside = None
            if isinstance(inside, ast.Name) and inside.id in _NAMES:
                return _NAMES[inside.id]
            if inside is not None and self.outside is None:
                return self.type_of(inside)
            if isinstance(inside, ast.Name) and isinstance(named := self._value(inside), type):
                if (found := python_type(named)) is not None:
                    return found
            self.unit.refuse(f"Unknown type name '{node.value}'", node)
        if isinstance(node, ast.Constant) and node.value is None:
            return t.NONE
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return t.union([self.type_of(node.left), self.type_of(node.right)])
        if isinstance(node, ast.Subscript):
            return self._read_subscript(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = ast.unparse(node)
            name = name.removeprefix("torch.") if name == "torch.Tensor" else name
            if name in _NAMES:
                return _NAMES[name]
            self.unit.refuse(f"Unknown type name '{ast.unparse(node)}'", node)
        kind = "dots" if isinstance(node, ast.Constant) and node.value is ... else type(node).__name__.lower()
        if isinstance(node, ast.BinOp):
            kind = _SIGNS.get(type(node.op), kind)
        kind = {"constant": "const"}.get(kind, kind)
        self.unit.refuse(f"Expression of type {kind} cannot be used in a type expression", node)

    def repeated(self, node, kind):
        """(type, length) of a list for which one number may be given, else the type and None."""
        length = broadcast_length(node)
        if length is None:
            return kind, None
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).rpartition(".")[2].startswith("Broad"):
            return t.list_of(self.type_of(node.slice)), length
        named = isinstance(node, (ast.Name, ast.Attribute))  # as `_size_2_t`
        return (t.list_of(t.INT), length) if named else (kind, None)

    def _read_subscript(self, node):
        name = ast.unparse(node.value)
        last = name.removeprefix("typing.") if self.outside is None else name
        if last.rpartition(".")[2].startswith("BroadcastingList"):  # a number or a list of them
            if not last[-1].isdigit():
                self.unit.refuse("The length of a broadcasting list must be a positive integer", node)
            return t.UNKNOWN
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not isinstance(node.value, (ast.Name, ast.Attribute)):
            self.unit.refuse("Subscripted type must be a type identifier", node)
        if last not in _BUILT:
            self.unit.refuse(f"Unknown type constructor {name}", node)
        parts = [self.type_of(part) for part in inside]
        counts = {"List": 1, "list": 1, "Optional": 1, "Future": 1, "Await": 1, "Dict": 2, "dict": 2}
        wanted = counts.get(last)
        if wanted is not None and len(parts) != wanted:
            self.unit.refuse(f"{last} type must have exactly {wanted} element type(s)", node)
        if last.lower() == "dict":
            return _dict_type(*parts)
        made = {"optional": lambda: t.optional(parts[0]), "union": lambda: t.union(parts)}.get(last.lower())
        return made() if made else t.UNKNOWN if last == "RRef" else t.Type(last.title(), parts)


_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


def schema_of(unit, outside, skip_self=False, defaults=(), evaluated=None):
    """The schema of a function: types as written, Tensor where nothing is written."""
    arguments = unit.tree.args
    said = {a.arg: a.annotation for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    said["return"] = unit.tree.returns
    texts = {ast.unparse(said[n]): v for n, v in (evaluated or {}).items() if said.get(n) is not None}
    annotations = Annotations(unit, outside, {n: v for n, v in texts.items() if not isinstance(v, str)})
    plain = [*arguments.posonlyargs, *arguments.args]
    values = dict(defaults)
    made = []
    for i, argument in enumerate((*plain, *arguments.kwonlyargs)):
        if skip_self and i == 0:
            continue
        written = argument.annotation
        kind = t.INFERRED if written is None else annotations.type_of(written)
        kind, length = annotations.repeated(written, kind)
        default = values.get(argument.arg, t.Argument.REQUIRED)
        if _is_mutable(default):
            raise RuntimeError(
                "Mutable default parameters are not supported because Python binds them to the function and "
                "they persist across function calls.\n As a workaround, make the default None and "
                "instantiate the default parameter within the body of the function. Found "
                f"{type(default)} on parameter {argument.arg}."
            )
        if default is not t.Argument.REQUIRED:
            one = length and type(default) in (int, float)
            default = _default(unit, argument.arg, [default] * length if one else default, kind)
        made.append(t.Argument(argument.arg, kind, default, i >= len(plain), length))
    returned = unit.tree.returns
    return t.Schema(unit.tree.name, made, t.UNKNOWN if returned is None else annotations.type_of(returned))


def _is_mutable(value):
    return isinstance(value, (list, dict, set)) or type(value) is tuple and any(map(_is_mutable, value))


def _default(unit, name, value, kind):
    """A default as a value of the argument's type."""
    try:
        return converted(value, kind)
    except TypeError:
        inferred = (
            f"Because \"{name}\" was not annotated with an explicit type it is assumed to be type 'Tensor'."
            if kind.kind == "Inferred"
            else ""
        )
        unit.refuse(f'Expected a default value of type {kind} on parameter "{name}".{inferred}', unit.tree)


def value_type(value):
    """The type of a value as TorchScript infers it; `UNKNOWN` where it has none or it is not sure."""
    if isinstance(value, rushlight.Tensor):
        return t.TENSOR
    if value is None or type(value) in (bool, int, float, complex, str):
        return _PLAIN[type(value)]
    if isinstance(value, rushlight.device):
        return t.DEVICE
    if isinstance(value, t.DTYPE_LIKE):
        return t.INT
    if type(value) in (tuple, rushlight.Size):
        return t.tuple_of(map(value_type, value))
    if isinstance(value, (list, dict)):
        if (known := getattr(value, "_script_type", None)) is not None:
            return known
        kinds = [_common(value)] if isinstance(value, list) else [_common(value), _common(value.values())]
        return t.Type("List" if isinstance(value, list) else "Dict", kinds)
    if isinstance(value, enum.Enum):
        return python_type(type(value))
    if isinstance(value, tuple) or is_compiled_class(type(value)):
        return python_type(type(value)) or t.UNKNOWN
    return t.UNKNOWN


def _common(values):
    kinds = {value_type(v) for v in values}
    return kinds.pop() if len(kinds) == 1 else t.UNKNOWN


def members_of_enum(cls):
    """Name -> value of an enumeration, whose values must be of one type that scripts know."""
    values = {name: member.value for name, member in cls.__members__.items()}
    kinds = {value_type(v) for v in values.values()}
    unfit = [kind for kind in kinds if kind not in (t.INT, t.FLOAT, t.STR)]
    if unfit:
        raise RuntimeError(
            f"Cannot create Enum with value type '{unfit[0]}', only int, float and string are supported"
        )
    if len(kinds) > 1:
        raise RuntimeError(
            f"Could not unify type list for the values of enum class '{cls.__name__}': all of them must "
            f"be of one type, found {', '.join(sorted(map(str, kinds)))}"
        )
    return values
