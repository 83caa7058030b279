"""Classes of the program in scripts: their methods, compiled when they are asked for, and what their
attributes are.

A script uses such a class as it is. Its record says what the class is made of, so that types of its values
can be followed and the class can be written to a file."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types

from rushlight.jit import _types as t
from rushlight.jit._annotations import (
    is_compiled_class,
    members_of_enum,
    qualified_name,
    value_type,
)
from rushlight.jit._class_checks import check_attributes, check_bases
from rushlight.jit._dataclass_source import method_sources

__all__ = ["ScriptedClass", "attach", "enum_value_type", "known_record", "record_of"]

_RECORD = "__torch_script_class__"


def record_of(cls) -> ScriptedClass | None:
    """The record of a class, made when it is asked for first; None for one that scripts do not know."""
    if not isinstance(cls, type):
        return None
    found = vars(cls).get(_RECORD)
    if found is None:
        kind = _kind(cls)
        if kind is None:
            return None
        found = ScriptedClass(cls, kind)
        setattr(cls, _RECORD, found)
    return found


def known_record(cls) -> ScriptedClass:
    """The record of a class that is known to have one."""
    found = record_of(cls)
    assert found is not None
    return found


def attach(cls, kind):
    """Note what a class is that was read from a file."""
    setattr(cls, _RECORD, ScriptedClass(cls, kind))


def _kind(cls):
    if issubclass(cls, enum.Enum):
        return "enum"
    if issubclass(cls, BaseException):
        return None if cls.__module__ == "builtins" else "exception"
    if issubclass(cls, tuple):
        return "tuple" if hasattr(cls, "_fields") else None
    return "class" if is_compiled_class(cls) else None


class ScriptedClass:
    """What scripts know of a class: ``units`` of its methods, and ``attributes`` with their types."""

    def __init__(self, cls, kind):
        self.cls, self.kind, self.name = cls, kind, qualified_name(cls)
        self.units, self.setters, self.attributes, self.under_way = {}, {}, {}, set()
        self.complete = kind != "class"
        self.read_from_file, self.around = False, {}
        self.texts = method_sources(cls) if dataclasses.is_dataclass(cls) else {}

    @property
    def type(self):
        return t.Type("Class", name=self.name, python=self.cls)

    def member(self, name):
        """What the class's body has under a name."""
        return vars(self.cls).get(name)

    def methods(self):
        """The names of what the class's body defines."""
        own = [n for n, m in vars(self.cls).items() if _function(m) is not None and not _is_left_out(m)]
        if dataclasses.is_dataclass(self.cls):
            # `repr` and the like are made without source, `__replace__` is the same in all of them.
            added = ("<string>", dataclasses.__file__)
            own = [n for n in own if _function(self.member(n)).__code__.co_filename not in added]
        return list(dict.fromkeys((*self.texts, *own)))

    def compile(self, around=()):
        """Compile every method; raises what a script cannot take. `around` are names where it is defined."""
        if self.kind == "enum":
            members_of_enum(self.cls)
        if self.complete or self.under_way or self.read_from_file:
            return self
        check_bases(self.cls)
        self.around = dict(around)
        try:
            return self._compile_methods()
        finally:
            self.around = {}

    def _compile_methods(self):
        self.unit("__init__")
        for name in self.methods():
            self.unit(name)
            if isinstance(self.member(name), property) and self.member(name).fset is not None:
                self.setters[name] = self._compiled(name, self.member(name).fset)
        check_attributes(self.cls, {n: u for n, u in self.units.items() if not self.is_static(n)})
        self.complete = True
        return self

    def is_static(self, name):
        return isinstance(self.member(name), (staticmethod, classmethod))

    def unit(self, name):
        """The compiled method of this name; None if there is none, or if it is being compiled."""
        if name in self.units or self.read_from_file:
            return self.units.get(name)
        if name in self.under_way or self.kind != "class" or name not in self.methods():
            return None
        self.under_way.add(name)
        try:
            self.units[name] = self._compiled(name)
        finally:
            self.under_way.discard(name)
        return self.units[name]

    def _compiled(self, name, function=None):
        from rushlight.jit._checker import check_function
        from rushlight.jit.frontend import script_function, unit_of_method_text

        extra = {**self.around, self.cls.__name__: self.cls}
        if name in self.texts:
            text, names = self.texts[name]
            unit = unit_of_method_text(f"{self.cls.__qualname__}.{name}", text, {**names, **extra})
        else:
            static = isinstance(self.member(name), staticmethod)
            unit = script_function(function or _function(self.member(name)), {}, not static, extra)
            if static:
                return unit
        if not unit.overloaded:
            check_function(unit, unit.outside, True, own=self)
        return unit

    def schema(self, name):
        """The schema of a method; None where it is not known."""
        unit = self.unit(name)
        return None if unit is None or unit.overloaded else unit.schema

    def attribute(self, name):
        """The type of an attribute; None if the class has none of this name, as far as is known."""
        if self.read_from_file:
            return t.UNKNOWN
        if "__init__" not in self.units:
            self.unit("__init__")
        if name in self.attributes:
            return self.attributes[name]
        member = self.member(name)
        if isinstance(member, property):
            schema = self.schema(name)
            return schema.returns if schema is not None else t.UNKNOWN
        constants = getattr(self.cls, "__constants__", ())
        if name in constants or "Final" in str(vars(self.cls).get("__annotations__", {}).get(name)):
            return value_type(member)
        if _is_left_out(member) or "__init__" in self.under_way:
            return t.UNKNOWN
        return None

    def has_method(self, name):
        return name in self.units or _function(self.member(name)) is not None or name in self.texts


def _function(member):
    """The function behind a member of a class's body."""
    if isinstance(member, property):
        member = member.fget
    function = getattr(member, "__func__", member)
    function = inspect.unwrap(function) if callable(function) else function
    return function if isinstance(function, types.FunctionType) else None


def _is_left_out(member):
    function = _function(member)
    return getattr(function, "_torchscript_modifier", None) in ("ignore", "unused")


def enum_value_type(cls):
    """The type of the values of an enumeration."""
    kinds = {value_type(member.value) for member in cls}
    return kinds.pop() if len(kinds) == 1 else t.UNKNOWN
