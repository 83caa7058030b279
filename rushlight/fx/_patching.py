"""While a tracer runs, some functions are replaced; here is how, and how they come back."""

import builtins
import contextlib
import functools
import inspect
import types
from dataclasses import dataclass
from typing import Any

from rushlight import _C
from rushlight._command.names import show_from

from .proxy import Proxy

_wrapped_fns_to_patch: dict = {}  # (id of a module's globals, name) -> the globals
_wrapped_methods_to_patch: list = []  # (class, name)


@dataclass
class _Patch:
    """One attribute or item, and what it was."""

    owner: Any
    name: str
    original: Any
    is_item: bool
    was_there: bool = True

    def apply(self, value):
        if self.is_item:
            self.owner[self.name] = value
        else:
            setattr(self.owner, self.name, value)

    def revert(self):
        if self.was_there:
            self.apply(self.original)
        elif self.is_item:
            del self.owner[self.name]
        else:
            delattr(self.owner, self.name)


@dataclass
class _ReadHook:
    """What modules asked before when a registered name was read."""

    original: Any

    def revert(self):
        _C._set_module_read_hook(self.original)


class _Patcher:
    """Replaces functions, and puts all of them back at the end."""

    def __init__(self):
        self.patches: list = []
        self.visited: set = set()

    def patch(self, frame_dict, name, new_fn, deduplicate=True):
        """Replace an entry of a module's globals; a missing one is a builtin."""
        if self._done(frame_dict[name] if name in frame_dict else getattr(builtins, name), deduplicate):
            return
        there = name in frame_dict
        self._apply(_Patch(frame_dict, name, frame_dict.get(name), True, there), new_fn)

    def patch_method(self, cls, name, new_fn, deduplicate=True):
        """Replace an attribute of a class."""
        if self._done(getattr(cls, name), deduplicate):
            return
        there = name in vars(cls)
        self._apply(_Patch(cls, name, vars(cls).get(name), False, there), new_fn)

    def patch_item(self, table, name, value):
        """Put an entry into a dictionary, an instance's attributes say."""
        self._apply(_Patch(table, name, table.get(name), True, name in table), value)

    def patch_module_reads(self, hook):
        """Let `hook(module, name, value)` say what reading a parameter, buffer or submodule gives."""
        self.patches.append(_ReadHook(_C._set_module_read_hook(hook)))

    def _done(self, function, deduplicate):
        return deduplicate and hasattr(function, "__fx_already_patched")

    def _apply(self, patch, new_fn):
        with contextlib.suppress(AttributeError):
            setattr(new_fn, "__fx_already_patched", True)  # noqa: B010
        self.patches.append(patch)
        patch.apply(new_fn)

    def visit_once(self, thing):
        """Whether this is the first time that `thing` is seen."""
        first = id(thing) not in self.visited
        self.visited.add(id(thing))
        return first

    def revert_all_patches(self):
        for patch in reversed(self.patches):
            patch.revert()
        return self.patches

    def reapply_all_patches(self):
        raise NotImplementedError("patches that were put back are not applied again")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.revert_all_patches()
        self.patches = []
        self.visited.clear()


def find_proxy(*objects):
    """Some proxy among nested values, or None."""
    for obj in objects:
        if isinstance(obj, Proxy):
            return obj
        if isinstance(obj, (list, tuple)):
            found = find_proxy(*obj)
        elif isinstance(obj, dict):
            found = find_proxy(*obj.values())
        elif isinstance(obj, slice):
            found = find_proxy(obj.start, obj.stop, obj.step)
        else:
            continue
        if found is not None:
            return found
    return None


def _create_wrapped_func(orig_fn):
    """The function, but a call with proxies becomes a node."""

    @functools.wraps(orig_fn)
    def wrapped(*args, **kwargs):
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls, name):
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args, **kwargs):
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def patch_wrapped_functions(patcher):
    """Replace everything that `wrap` was called for."""
    for (_, name), frame_dict in _wrapped_fns_to_patch.copy().items():
        if name not in frame_dict and hasattr(builtins, name):
            orig_fn = getattr(builtins, name)
        else:
            orig_fn = frame_dict[name]
        patcher.patch(frame_dict, name, _create_wrapped_func(orig_fn))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def autowrap_check(patcher, frame_dict, function_ids):
    """Replace those of a module's globals that a tracer wants to see as calls."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(frame_dict, name, _create_wrapped_func(value))


def wrap(fn_or_name):
    """Keep calls of a function as calls: say so where a module has it, by name or as decorator.

    >>> @torch.fx.wrap
    ... def my_function(x, y): ...
    >>> torch.fx.wrap("len")
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    if callable(fn_or_name):
        if isinstance(fn_or_name, str):
            raise AssertionError("unreachable")
        name = fn_or_name.__name__
    else:
        name = fn_or_name
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def without_varargs(fn, nargs):
    """The function with all its arguments positional, so that a proxy can stand for `*args`."""
    code = fn.__code__
    stars = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    plain = code.replace(
        co_argcount=nargs, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~stars
    )
    return types.FunctionType(plain, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


show_from("fx._symbolic_trace", wrap)
