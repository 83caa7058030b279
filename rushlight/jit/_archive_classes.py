"""Classes of the program in files of scripts: what is written of them, and how they are made again.

A file holds the text of methods, names and plain values. A class that is read can do what a script can and
has no method by which Python does more than compute."""

from __future__ import annotations

import builtins
import collections
import enum
import re

from rushlight.jit._annotations import members_of_enum
from rushlight.jit._closed_source import unit_from_source
from rushlight.jit._scripted_class import attach, record_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ClassReader", "described"]

_FOR_PYTHON = ("__getstate__", "__setstate__", "__reduce__")  # a file holds the attributes themselves
_KINDS = {property: "property", staticmethod: "static"}
# Methods that operators and built-in functions of scripts call.
_SPECIAL = frozenset(
    f"__{name}__"
    for name in """init post_init len contains getitem setitem delitem call str repr hash enter exit bool int
    float iter next neg pos invert abs eq ne lt le gt ge add sub mul truediv floordiv mod pow matmul and or
    xor lshift rshift radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rand ror rxor iadd isub imul
    itruediv ifloordiv imod ipow iand ior ixor""".split()
)


def described(cls, called, value):
    """What is written for a class. ``called``: takes each unit of a method; ``value``: makes plain data of a
    value."""
    record = record_of(cls)
    if record is None:
        raise TypeError(f"the class {cls.__name__} cannot be written to a file")
    if record.kind == "enum":
        mixed = "int" if issubclass(cls, int) else "str" if issubclass(cls, str) else ""
        return {"kind": "enum", "of": mixed, "members": members_of_enum(cls)}
    if record.kind == "exception":
        base = next(c for c in cls.__mro__ if c.__module__ == "builtins")
        return {"kind": "exception", "of": base.__name__}
    if record.kind == "tuple":
        defaults = {n: value(v) for n, v in cls._field_defaults.items()}
        return {"kind": "tuple", "fields": list(cls._fields), "defaults": defaults}
    methods = {}
    for name, unit in record.compile().units.items():
        if name in _FOR_PYTHON:
            continue
        called(unit)
        methods[name] = [_KINDS.get(type(record.member(name)), "method"), unit.code]
        if name in record.setters:
            methods[name].append(record.setters[name].code)
    constants = {n: value(vars(cls)[n]) for n in getattr(cls, "__constants__", ()) if n in vars(cls)}
    return {"kind": "class", "methods": methods, "constants": constants}


class ClassReader:
    """Makes the classes of a file. ``names`` has the functions and classes that its texts may name."""

    def __init__(self, saved, names, filename, value):
        self.saved, self.names, self.filename, self.value = saved, names, filename, value
        self.classes = {}
        for name, content in saved.items():
            self.classes[name] = names[name] = made = self._made(name, content)
            if content["kind"] == "enum":
                names.update((f"{name}.{member}", m) for member, m in made.__members__.items())

    def fill(self):
        """Give the classes their methods, once all of them can be named."""
        for name, content in self.saved.items():
            if content["kind"] == "class":
                self._methods(self.classes[name], name, content)

    def _made(self, name, content):
        home, _, short = re.sub(r"___torch_mangle_\d+\.", "", name).rpartition(".")
        if not short.isidentifier() or short.startswith("__"):
            raise self._refused(name)
        kind, space = content["kind"], {"__module__": home}
        made: Any
        if kind == "tuple":
            make: Any = collections.namedtuple
            made = make(short, content["fields"], module=home)
            made._field_defaults = {n: self.value(v) for n, v in content["defaults"].items()}
            fields = [made._field_defaults[f] for f in made._fields if f in made._field_defaults]
            made.__new__.__defaults__ = tuple(fields)
        elif kind == "enum":
            mixed = {"int": int, "str": str, "": None}[content["of"]]
            members = {str(n): v for n, v in content["members"].items()}
            if not all(n.isidentifier() and n[0] != "_" for n in members):
                raise self._refused(name)
            make = enum.Enum
            made = (
                make(short, members, module=home, type=mixed) if mixed else make(short, members, module=home)
            )
        elif kind == "exception":
            base = getattr(builtins, content["of"])
            if not (isinstance(base, type) and issubclass(base, Exception)):
                raise self._refused(name)
            made = type(short, (base,), space)
        elif kind == "class":
            made = type(short, (), space)
        else:
            raise self._refused(name)
        attach(made, kind)
        return made

    def _methods(self, cls, name, content):
        record: Any = record_of(cls)
        record.read_from_file = True
        for method, (kind, source, *setter) in content["methods"].items():
            if not method.isidentifier() or method.startswith("__") and method not in _SPECIAL:
                raise self._refused(f"{name}.{method}")
            unit = self._unit(cls, method, source, kind != "static")
            record.units[method], made = unit, unit.function()
            if kind == "property":
                made = property(made)
                if setter:
                    record.setters[method] = unit = self._unit(cls, method, setter[0], True)
                    made = made.setter(unit.function())
            setattr(cls, method, staticmethod(made) if kind == "static" else made)
        for constant, saved in content["constants"].items():
            if not constant.isidentifier() or constant.startswith("__"):
                raise self._refused(f"{name}.{constant}")
            setattr(cls, constant, self.value(saved))
        if content["constants"]:
            cls.__constants__ = list(content["constants"])

    def _unit(self, cls, method, source, is_method):
        from rushlight.jit._annotations import schema_of
        from rushlight.jit.frontend import defaults_of

        unit = unit_from_source(f"{cls.__name__}.{method}", source, self.names, self.filename)
        unit.schema = schema_of(unit, None, is_method, defaults_of(unit.function()))
        return unit

    def _refused(self, name):
        return RuntimeError(f"jit.load: {self.filename}: {name} is no class that a file may hold")
