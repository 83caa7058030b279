"""Decorators and annotations of TorchScript; in Python they change nothing."""

from __future__ import annotations

import builtins
import contextlib
import threading
import typing

from rushlight._command.names import show_from

__capture__ = "through"  # Note [Capture marks]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Final = typing.Final


class Attribute(typing.NamedTuple):
    """A value with the type that TorchScript would take for it."""

    value: object
    type: object


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value; the type would be TorchScript's."""
    return the_value


def is_scripting() -> bool:
    """Whether this is a script: True in compiled code alone.

    Example:
        >>> torch.jit.is_scripting()
        False
    """
    return False


_tracing = threading.local()


class Scopes:
    """What `torch._C._get_tracing_state` gives while a run is recorded: the scopes that its hooks opened."""

    def __init__(self):
        self._names = []

    def push_scope(self, name):
        self._names.append(name)

    def pop_scope(self):
        self._names.pop()

    def current_scope(self):
        return "/".join(self._names)


@contextlib.contextmanager
def tracing(scopes, recorder=None):
    """While a run is recorded; `recorder` is told of scripts that are called."""
    outer = {name: getattr(_tracing, name, None) for name in ("scopes", "recorder")}
    _tracing.scopes, _tracing.recorder = scopes, recorder
    try:
        yield
    finally:
        vars(_tracing).update(outer)


def tracing_state():
    """The scopes of the run that this thread records, or None."""
    return getattr(_tracing, "scopes", None)


def is_tracing() -> bool:
    """Whether `torch.jit.trace` records what this thread computes.

    Example:
        >>> torch.jit.is_tracing()
        False
    """
    return tracing_state() is not None


def _unwrap_optional(x):
    """``x``, which is not None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def computes(fn: Any) -> Any:
    """A function of the library's own that only computes: files of scripts may name it."""
    fn._only_computes = True
    return fn


def export(fn: Any) -> Callable[..., Any]:
    """Compile this method of a module along with `forward`."""
    fn._torchscript_modifier = "export"
    return fn


def unused(fn: Any) -> Any:
    """Leave this function out of scripts: calling it there raises."""

    if isinstance(fn, property):
        return property(fn.fget and unused(fn.fget), fn.fset and unused(fn.fset), fn.fdel and unused(fn.fdel))
    fn._torchscript_modifier, fn._in_script = "unused", unusable(fn.__qualname__)
    return fn


def unusable(name):
    """What stands in scripts for a function that was left out of them."""

    def unused_function(*args, **kwargs):
        from rushlight.jit import Error

        raise Error(
            f"{name}: this function is marked with @torch.jit.unused: it is annotated to be ignored and "
            "cannot be run"
        )

    unused_function.is_left_out = True
    return unused_function


def ignore(drop: Any = False, **kwargs: Any) -> Callable[..., Any]:
    """Leave this function Python: scripts call it, and cannot be saved. Used with or without arguments.

    Args:
        drop (bool): whether a saved script may lack the function.

    Example:
        >>> @torch.jit.ignore
        ... def log(x):
        ...     return x
        >>> log(3)
        3
    """
    if callable(drop):
        drop._torchscript_modifier = "ignore"
        return drop
    return unused if drop else ignore


def _drop(fn: Any) -> Any:
    """Leave this function out of scripts."""
    return unused(fn)


def interface(obj: Any) -> Any:
    """Gives back the class, whose name in annotations stands for whatever has its methods."""
    from rushlight.jit._interfaces import check_interface

    check_interface(obj)
    obj.__torch_script_interface__ = obj.__qualname__
    return obj


def script_if_tracing(fn):
    """Script the function when it is called first while `torch.jit.trace` records."""
    import functools

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        if not is_tracing():
            return fn(*args, **kwargs)
        import rushlight

        return rushlight.jit.script(wrapper.__original_fn)(*args, **kwargs)

    wrapper.__original_fn = fn
    wrapper.__script_if_tracing_wrapper = True
    return wrapper


_overloaded: set = set()  # (module, name) of functions that have several signatures in scripts


def _overload(func):
    """One signature of a function; what is defined under the same name after it serves them all."""
    _check_empty(func)
    _overloaded.add((func.__module__, func.__qualname__))
    func.__overload_signature__ = True
    return func


def _check_empty(func):
    """A signature has no body. Without source there is none to check."""
    import ast
    import inspect
    import textwrap

    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(func))).body[0].body
    except (OSError, TypeError, SyntaxError):
        return
    words = [s for s in body if not isinstance(s, ast.Expr) or not isinstance(s.value, ast.Constant)]
    if not all(isinstance(s, ast.Pass) for s in words):
        raise RuntimeError(
            f"Only `pass` statement or `...` can be the body of overload declaration: {func.__qualname__}"
        )


def _overload_method(func):
    return _overload(func)


class strict_fusion(contextlib.ContextDecorator):  # noqa: N801 - PyTorch's name
    """A block without effect."""

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        return None


@contextlib.contextmanager
def optimized_execution(should_optimize: bool):
    """A block without effect."""
    yield


def refined_isinstance(obj: Any, target_type: Any):
    """``isinstance`` that also looks into the items of List[T], Dict[K, V], Tuple[...] and Optional[T]."""
    if builtins.isinstance(target_type, (list, set, dict)):
        raise RuntimeError("The second argument to `torch.jit.isinstance` must be a type or a tuple of types")
    check_empty_containers(obj)
    return _refined(obj, target_type)


def check_empty_containers(obj: Any) -> None:
    """Warn of an empty container: nothing in it says of what type its items would be."""
    if builtins.isinstance(obj, (list, dict, tuple)) and not obj:
        import warnings

        warnings.warn(
            "The inner type of a container is lost when calling torch.jit.isinstance in eager mode. For "
            "example, List[int] would become list and therefore falsely return True for List[float] or "
            "List[str].",
            stacklevel=3,
        )


def _refined(obj, target_type):
    if target_type in _BARE:
        example = "Dict[int, int]" if target_type is _BARE[1] else f"{target_type._name}[int]"
        contained = (
            "contained types. Please add" if target_type is _BARE[1] else "a contained type. Please add a"
        )
        raise RuntimeError(
            f"Attempted to use {target_type._name} without {contained} contained type, e.g. {example}"
        )
    if isinstance_of_union(target_type):
        return any(_refined(obj, t) for t in typing.get_args(target_type))
    if type(target_type) is tuple:
        return any(_refined(obj, t) for t in target_type)
    origin, arguments = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return builtins.isinstance(obj, type(None) if target_type is None else target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        key, value = arguments
        return all(_refined(k, key) and _refined(v, value) for k, v in obj.items())
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_refined(v, arguments[0]) for v in obj)
        return len(obj) == len(arguments) and all(map(_refined, obj, arguments))
    return all(_refined(v, arguments[0]) for v in obj) if arguments else True


_BARE = [getattr(typing, name) for name in ("List", "Dict", "Tuple", "Optional")]


def isinstance_of_union(t):
    import types

    return typing.get_origin(t) in (typing.Union, types.UnionType)


show_from("_jit_internal", export, ignore, is_scripting, unused)
show_from("jit", annotate, isinstance, script_if_tracing, strict_fusion)
show_from("jit._script", Attribute)
