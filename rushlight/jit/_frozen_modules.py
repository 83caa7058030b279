"""Frozen modules: attributes and methods that only runs of the module see.

What freezing folds is kept beside a module's own tables, in `_folded`. The class of a frozen module lets its
scripts find that, and nobody else: from outside these names are not there."""

from __future__ import annotations

import contextlib
import functools
import threading
import types

from rushlight.jit._script import ScriptModule, describe_methods, shell
from rushlight.nn import Module

__all__ = ["fold", "folded_value", "is_frozen", "running", "whole"]


class _Runs(threading.local):
    depth = 0  # of calls of frozen modules in this thread


_runs = _Runs()
_TABLES = ("_parameters", "_buffers", "_modules")
_OWN_STATE = frozenset(Module().__dict__)  # what a module has without attributes of a program


@contextlib.contextmanager
def running():
    """For the time of a run, and for those who look at what it sees."""
    before = _runs.depth
    _runs.depth = before + 1
    try:
        yield
    finally:
        _runs.depth = before


class _Hidden:
    """A method, property or constant of a class that only runs see."""

    def __init__(self, name, member):
        self.name, self.member = name, member

    def __get__(self, module, owner=None):
        if not _runs.depth:
            raise AttributeError(f"{owner._original_name} does not have a field with name '{self.name}'")
        get = getattr(type(self.member), "__get__", None)
        return self.member if get is None else get(self.member, module, owner)


class _Frozen(ScriptModule):
    """What the class of a frozen module has over the class of its scripts."""

    _unfrozen: type[ScriptModule]
    _kept: frozenset

    def __call__(self, *args, **kwargs):
        with running():
            return super().__call__(*args, **kwargs)

    @property
    def _modules(self):  # type: ignore[override]
        """The table of children, through which traces name those that are no identifiers (`"0"`)."""
        left = self.__dict__["_modules"]
        if not _runs.depth:
            return left
        return {n: v for n, v in self.__dict__["_folded"].items() if isinstance(v, Module)} | left

    def __getattr__(self, name):
        folded = self.__dict__.get("_folded", ())
        if name in folded and _runs.depth:
            return folded[name]
        return super().__getattr__(name)

    def _unit(self, name="forward"):
        with running():
            return self._unfrozen._script_methods.get(name) or super()._unit(name)


def is_frozen(module):
    """Whether a module is one that `fold` was called for."""
    return isinstance(module, _Frozen)


def folded_value(module, name):
    """Whether an attribute of a module was folded, and its value."""
    folded = module.__dict__.get("_folded", {}) if isinstance(module, Module) else {}
    return name in folded, folded.get(name)


def fold(module, kept, methods):
    """Hide all attributes of a scripted module but those kept, and all methods but these.

    A layer of the library, whose code walks its tables, hides its tensors alone."""
    own, folded = module.__dict__, {}
    own.pop("_graphs", None)
    is_layer = getattr(type(module), "_library_base", Module) is not Module
    for table in _TABLES[:2] if is_layer else _TABLES:
        folded.update({n: v for n, v in own[table].items() if n not in kept})
        own[table] = {n: v for n, v in own[table].items() if n in kept}
    for name in [n for n in own if n not in _OWN_STATE and n not in kept and not is_layer]:
        folded[name] = own.pop(name)
    own["_folded"] = folded
    module.__class__ = _frozen_class(type(module), frozenset(kept), frozenset(methods))
    describe_methods(module)


def whole(module):
    """A frozen module as it was, with the same values; another one as it is."""
    if not is_frozen(module):
        return module
    own = dict(module.__dict__)
    folded = own.pop("_folded")
    for table in _TABLES:
        own[table] = dict(own[table])
    for name, value in folded.items():
        (own["_modules"] if isinstance(value, Module) else own)[name] = value
    return shell(module._unfrozen, own)


def _frozen_class(cls, kept, methods):
    members = {}
    for name in cls._script_methods:
        member = getattr(cls, name) if name not in vars(cls) else vars(cls)[name]
        members[name] = _entry(member) if name in methods else _Hidden(name, member)
    for name, value in vars(cls).items():
        constant = name[0] != "_" and name not in members and not callable(value)
        if constant and name not in kept and not isinstance(value, property):
            members[name] = _Hidden(name, value)
    units = {n: u for n, u in cls._script_methods.items() if n in methods}
    members.update(_script_methods=units, _unfrozen=cls, _kept=kept)
    members.update(__module__=cls.__module__, __qualname__=cls.__name__)
    return type(cls.__name__, (_Frozen, cls), members)


def _entry(function):
    """A method that may be called from outside, and then begins a run."""
    if not isinstance(function, types.FunctionType):
        return function

    @functools.wraps(function)
    def method(self, *args, **kwargs):
        with running():
            return function(self, *args, **kwargs)

    return method
