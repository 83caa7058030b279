"""The types of TorchScript: how they are written, which is part of which, and what two have in common.

`UNKNOWN` stands for a type that this compiler does not work out; it fits everywhere, so that nothing is
refused without being sure."""

from __future__ import annotations

import functools

import rushlight

# Values that scripts hold as integers.
DTYPE_LIKE = (rushlight.dtype, rushlight.layout, rushlight.memory_format, rushlight.qscheme)


class Type:
    """One type. Equal types are equal objects' values: compare with ``==``."""

    __slots__ = ("args", "kind", "name", "python")

    def __init__(self, kind, args=(), name=None, python=None):
        self.kind, self.args, self.name, self.python = kind, tuple(args), name, python

    def __eq__(self, other):
        return (
            isinstance(other, Type)
            and (self.kind, self.args, self.name) == (other.kind, other.args, other.name)
            and (self.kind != "Enum" or self.python is other.python)
        )

    def __hash__(self):
        return hash((self.kind, self.args, self.name))

    def __str__(self):
        """As annotations write it, which messages quote."""
        if self.kind in ("Class", "NamedTuple", "Enum", "Interface"):
            return self.name
        if self.kind == "Tuple" and not self.args:
            return "Tuple[()]"
        inside = ", ".join(map(str, self.args))
        return f"{self.kind}[{inside}]" if self.args else _WRITTEN.get(self.kind, self.kind)

    __repr__ = __str__

    def schema(self):
        """As signatures write it: ``int[]``, ``Tensor?``, ``(int, str)``."""
        inside = [a.schema() for a in self.args]
        if self.kind == "List":
            return f"{inside[0]}[]"
        if self.kind == "Optional":
            return f"{inside[0]}?"
        if self.kind == "Enum":
            return f"Enum<{self.name}>"
        if self.kind == "Tuple":
            return f"({', '.join(inside)})"
        if self.kind == "Future":
            return f"Future[{inside[0]}]"
        if self.kind == "NamedTuple" and self.python is not None:
            given = self.python._field_defaults
            fields = zip(self.python._fields, inside, strict=True)
            parts = (f"{n} : {k}{f' = {_stored(given[n])}' if n in given else ''}" for n, k in fields)
            return f"NamedTuple({', '.join(parts)})"
        if self.args and self.name is None:
            inside = [
                f"Future({a.args[0].schema()})" if a.kind == "Future" else a.schema() for a in self.args
            ]
            return f"{self.kind}({', '.join(inside)})"
        return {"number": "Scalar", "Unknown": "Any", "Inferred": "Tensor"}.get(self.kind, str(self))

    @property
    def known(self):
        return self.kind != "Unknown" and all(a.known for a in self.args)


_WRITTEN = {"Inferred": "Tensor (inferred)", "Unknown": "Any"}

UNKNOWN = Type("Unknown")
TENSOR, INFERRED = Type("Tensor"), Type("Inferred")
INT, FLOAT, BOOL, STR, COMPLEX, NUMBER = map(Type, ("int", "float", "bool", "str", "complex", "number"))
NONE, ANY, DEVICE, GENERATOR = map(Type, ("NoneType", "Any", "Device", "Generator"))
STREAM = Type("Stream")
NUMBERS = (INT, FLOAT, COMPLEX)


def list_of(element):
    return Type("List", (element,))


def dict_of(key, value):
    return Type("Dict", (key, value))


def tuple_of(parts):
    return Type("Tuple", parts)


def future_of(element):
    return Type("Future", (element,))


def await_of(element):
    return Type("Await", (element,))


def optional(element):
    """Optional[T]; of an Optional or of what holds None already, that itself."""
    if element.kind in ("Optional", "NoneType", "Any", "Unknown"):
        return element
    if element.kind == "Union":
        return element if NONE in element.args else union((*element.args, NONE))
    return Type("Optional", (element,))


def union(parts):
    """The Union of types, flat and without repetition; one with None alone is an Optional."""
    flat = []
    for part in parts:
        for p in options(part):
            if any(is_subtype(p, f) and p.known and f.known for f in flat):
                continue
            flat = [f for f in flat if not (is_subtype(f, p) and p.known and f.known)]
            flat.append(p)
    if len(flat) == 1:
        return flat[0]
    if len(flat) == 2 and NONE in flat:
        return optional(flat[0] if flat[1] == NONE else flat[1])
    if set(flat) == set(NUMBERS):
        return NUMBER
    return Type("Union", sorted(flat, key=lambda p: (_ORDER.get(p.kind, len(_ORDER)), str(p))))


# In which order PyTorch writes the types of a Union.
_ORDER = {
    kind: i
    for i, kind in enumerate(
        "Any Enum Tensor Tuple List Dict number float complex Future int NoneType str Generator bool".split()
    )
}


def options(type_):
    """What a value of this type may be, one by one."""
    if type_.kind == "Optional":
        return (*options(type_.args[0]), NONE)
    if type_.kind == "Union":
        return type_.args
    return (type_,)


def plain(type_):
    """Without the mark that a Tensor was not written but assumed."""
    return TENSOR if type_.kind == "Inferred" else type_


@functools.lru_cache(4096)
def is_subtype(a, b):
    """Whether each value of type ``a`` is one of ``b``, as far as both are known."""
    a, b = plain(a), plain(b)
    if a == b or "Unknown" in (a.kind, b.kind) or b.kind == "Any":
        return True
    if a.kind in ("Optional", "Union"):
        return all(is_subtype(part, b) for part in options(a))
    if b.kind in ("Optional", "Union"):
        return any(is_subtype(a, part) for part in options(b))
    if b.kind == "number":
        return a in NUMBERS
    if b.kind == "Tuple" and a.kind in ("Tuple", "NamedTuple"):
        return len(a.args) == len(b.args) and all(map(is_subtype, a.args, b.args))
    if a.kind == b.kind in ("List", "Dict"):  # what can be written to is of exactly one type
        return all(same(x, y) for x, y in zip(a.args, b.args, strict=True))
    if a.kind == b.kind and a.kind in ("Future", "Await"):
        return is_subtype(a.args[0], b.args[0])
    if b.kind == "Interface":
        return a.kind in ("Class", "Interface")
    if a.kind == b.kind == "Class":
        return a.python is None or b.python is None or issubclass(a.python, b.python)
    return False


def same(a, b):
    """Whether two types can be one and the same."""
    return is_subtype(a, b) and is_subtype(b, a)


def unify(a, b, to_union=False):
    """The type of a value that is of type ``a`` or of type ``b``; None if TorchScript has none."""
    a, b = plain(a), plain(b)
    if not a.known and is_subtype(a, b):
        return b if b.known else UNKNOWN
    if is_subtype(a, b):
        return b
    if is_subtype(b, a):
        return a
    if "Unknown" in (a.kind, b.kind):
        return UNKNOWN
    if NONE in (a, b):
        return optional(b if a == NONE else a)
    if "Optional" in (a.kind, b.kind):
        inner = unify(*(t.args[0] if t.kind == "Optional" else t for t in (a, b)))
        if inner is not None:
            return optional(inner)
    if a.kind == b.kind == "Tuple" and len(a.args) == len(b.args):
        parts = [unify(x, y) for x, y in zip(a.args, b.args, strict=True)]
        if None not in parts:
            return tuple_of(parts)
    return union((a, b)) if to_union else None


class Argument:
    """One argument of a schema; ``default`` is ``Argument.REQUIRED`` where it must be given, ``length``
    how many items a list has for which one may stand."""

    REQUIRED = object()
    __slots__ = ("default", "kwarg_only", "length", "name", "type")

    def __init__(self, name, type_, default=REQUIRED, kwarg_only=False, length=None):
        self.name, self.type, self.default, self.kwarg_only = name, type_, default, kwarg_only
        self.length = length

    def __str__(self):
        given = "" if self.default is Argument.REQUIRED else f"={_literal(self.default)}"
        kind = self.type.schema()
        return f"{kind if self.length is None else f'{kind[:-1]}{self.length}]'} {self.name}{given}"


def _stored(value):
    """A value as graphs show it."""
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_stored, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_stored(k)}: {_stored(v)}' for k, v in value.items())}}}"
    return str(value)


def _literal(value):
    return f'"{value}"' if isinstance(value, str) else str(value).replace("rushlight.", "torch.")


class Schema:
    """The arguments of a function and what it gives."""

    def __init__(self, name, arguments, returns=UNKNOWN):
        self.name, self.arguments, self.returns = name, list(arguments), returns

    def of_method(self, owner):
        """The same with the object first, whose class has this name."""
        own = Argument("self", Type("Class", name=owner))
        return Schema(self.name, [own, *self.arguments], self.returns)

    def __str__(self):
        parts, starred = [], False
        for argument in self.arguments:
            if argument.kwarg_only and not starred:
                parts.append("*")
                starred = True
            parts.append(str(argument))
        returned = self.returns.schema()
        if self.returns.kind == "Tuple" or self.returns.kind == "List" and returned.startswith("("):
            returned = f"({returned})"
        return f"{self.name}({', '.join(parts)}) -> {returned}"

    __repr__ = __str__
