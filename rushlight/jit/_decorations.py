"""Decorators and annotations of TorchScript, without effect in Python."""

import builtins
import contextlib
import typing

Final = typing.Final


class Attribute(typing.NamedTuple):
    """A value with the type that TorchScript would take for it."""

    value: object
    type: object


def annotate(the_type, the_value):
    """The value; the type would be TorchScript's."""
    return the_value


def is_scripting() -> bool:
    """Always False: this is Python."""
    return False


def is_tracing() -> bool:
    """Always False: nothing is being traced."""
    return False


def export(fn):
    """Gives back the method."""
    return fn


def unused(fn):
    """Gives back the method."""
    return fn


def ignore(drop=False, **kwargs):
    """Gives back the method; used with or without arguments."""
    return drop if callable(drop) else (lambda fn: fn)


def interface(obj):
    """Gives back the class."""
    return obj


def script_if_tracing(fn):
    """Gives back the function."""
    return fn


def _overload(func):
    return func


def _overload_method(func):
    return func


class strict_fusion(contextlib.ContextDecorator):  # noqa: N801 - PyTorch's name
    """A block without effect."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """A block without effect."""
    yield


def refined_isinstance(obj, target_type):
    """``isinstance`` that also looks into the items of List[T], Dict[K, V], Tuple[...] and Optional[T]."""
    if isinstance_of_union(target_type):
        return any(refined_isinstance(obj, t) for t in typing.get_args(target_type))
    if type(target_type) is tuple:
        return any(refined_isinstance(obj, t) for t in target_type)
    origin, arguments = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return builtins.isinstance(obj, type(None) if target_type is None else target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        key, value = arguments
        return all(refined_isinstance(k, key) and refined_isinstance(v, value) for k, v in obj.items())
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(refined_isinstance(v, arguments[0]) for v in obj)
        return len(obj) == len(arguments) and all(map(refined_isinstance, obj, arguments))
    return all(refined_isinstance(v, arguments[0]) for v in obj) if arguments else True


def isinstance_of_union(t):
    import types

    return typing.get_origin(t) in (typing.Union, types.UnionType)
