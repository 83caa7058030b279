"""The modules of a program that no graph is for: while it runs, each runs through graphs of its own."""

import functools
import types
import weakref

from rushlight import _C
from rushlight._command.names import is_own
from rushlight.nn import Module

__all__ = ["Parts"]

__capture__ = "skip"  # Note [Capture marks]


class Parts:
    """Modules that run through graphs while one program runs as it is written."""

    def __init__(self, program):
        self.program = weakref.ref(program, lambda _: self.clear())
        self.members = {}  # id of a module -> a weak reference to it

    def split(self, function, args, kwargs):
        """Give the modules that a function calls graphs of their own, if those are worth one."""
        for module in _called(function, args, kwargs):
            if id(module) not in self.members and _is_worth_a_graph(module):
                self._add(module)

    def run(self, function):
        """What runs a function together with its parts."""
        return functools.partial(_C._with_parts, self, function) if self.members else function

    def clear(self):
        """Have all modules run as they are written."""
        for reference in list(self.members.values()):
            if (module := reference()) is not None:
                _C._make_part(module, self, None)
        self.members.clear()

    def _add(self, module):
        if (whole := self.program()) is None:
            return
        part = type(whole)(
            module._call_impl,
            whole.backend,
            dynamic=whole.dynamic,
            measure=whole.measured,
            name=type(module).__qualname__,
            parts=self,
        )
        key = id(module)
        parts = weakref.ref(self)

        def run_as_written(on):
            if on and (own := parts()) is not None:
                own._remove(key)

        part.watcher = run_as_written
        if _C._make_part(module, self, part):
            self.members[key] = weakref.ref(module, lambda _: self._remove(key))

    def _remove(self, key):
        reference = self.members.pop(key, None)
        module = reference() if reference is not None else None
        if module is not None:
            _C._make_part(module, self, None)
        if not self.members and (program := self.program()) is not None:
            program.without_parts()


def _is_worth_a_graph(module):
    """Whether a module is more than a step or two of the library's, which are as fast without a graph."""
    has_children = next(module.children(), None) is not None
    return (has_children or not is_own(type(module).__module__)) and not hasattr(module, "_orig_mod")


def _called(function, args, kwargs):
    """The modules that a function may call itself: those that its names and arguments lead to."""
    seen = set()
    for value in (*_in_reach(function), *args, *kwargs.values()):
        for module in _modules_in(value):
            if id(module) not in seen:
                seen.add(id(module))
                yield module


def _in_reach(function):
    """Values that a function reads by its names."""
    if isinstance(function, Module):
        yield from function._modules.values()
        function = type(function).forward
    elif isinstance(function, types.MethodType):
        holder, function = function.__self__, function.__func__
        if isinstance(holder, Module):
            yield from _in_reach(holder)
        else:
            yield from getattr(holder, "__dict__", {}).values()
    if isinstance(function, types.FunctionType):
        for cell in function.__closure__ or ():
            if cell != types.CellType():
                yield cell.cell_contents
        yield from (function.__globals__.get(name) for name in function.__code__.co_names)
        yield from function.__defaults__ or ()


def _modules_in(value):
    """The modules that a value is or holds; of a container that is never called, those in it."""
    if isinstance(value, Module):
        if type(value).forward is Module.forward and "forward" not in vars(value):
            for child in value._modules.values():
                yield from _modules_in(child)
        else:
            yield value
    elif type(value) in (list, tuple, dict):
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, Module):
                yield from _modules_in(item)
