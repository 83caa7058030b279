"""Decorators of data pipes: steps as methods, determinism, checks of types."""

import functools
import inspect
from typing import get_type_hints

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe, _DataPipeMeta

_determinism = False
_runtime_validation_enabled = True


class functional_datapipe:
    """Makes a pipe class a method of all pipes of its kind, under a name."""

    def __init__(self, name, enable_df_api_tracing=False):
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls):
        made_by = getattr(cls, "__self__", cls)  # of a non_deterministic class with a condition
        real = made_by.cls if isinstance(made_by, non_deterministic) else cls
        if not isinstance(real, type) or not issubclass(real, (IterDataPipe, MapDataPipe)):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe")
        kind = IterDataPipe if issubclass(real, IterDataPipe) else MapDataPipe
        kind.register_datapipe_as_function(self.name, cls)
        return cls


class guaranteed_datapipes_determinism:
    """Inside, pipes that are marked as non-deterministic refuse to be made."""

    def __init__(self):
        global _determinism
        self.prev, _determinism = _determinism, True

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        global _determinism
        _determinism = self.prev


class non_deterministic:
    """Marks a pipe class, always or where a function of its arguments says so."""

    def __init__(self, arg):
        self.cls = self.deterministic_fn = None
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    "Only `IterDataPipe` can be decorated with `non_deterministic`, "
                    f"but {arg.__name__} is found"
                )
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args, **kwargs):
        if self.cls is not None:
            self._refuse("is non-deterministic, but you set")
            return self.cls(*args, **kwargs)
        if not (isinstance(args[0], type) and issubclass(args[0], IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {args[0].__name__} is found")
        self.cls = args[0]
        return self.deterministic_wrapper_fn

    def _refuse(self, why):
        if _determinism:
            raise TypeError(
                f"{self.cls.__name__} {why} 'guaranteed_datapipes_determinism'. You can turn off determinism "
                "for this DataPipe if that is acceptable for your application"
            )

    def deterministic_wrapper_fn(self, *args, **kwargs):
        result = self.deterministic_fn(*args, **kwargs)
        if not isinstance(result, bool):
            raise TypeError(
                "deterministic_fn of `non_deterministic` decorator is required to return a boolean value, "
                f"but {type(result)} is found"
            )
        if result:
            self._refuse("is non-deterministic with the inputs, but you set")
        return self.cls(*args, **kwargs)


def argument_validation(f):
    """Checks arguments that are annotated as pipes: ``def f(x: IterDataPipe[int])``."""
    signature = inspect.signature(f)
    hints = get_type_hints(f)

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            if not isinstance(hint, _DataPipeMeta):
                continue
            if not isinstance(value, IterDataPipe):
                raise TypeError(f"Expected argument '{name}' as a IterDataPipe, but found {type(value)}")
            if not value.type.issubtype(hint.type):
                raise TypeError(
                    f"Expected type of argument '{name}' as a subtype of hint {hint.type}, "
                    f"but found {value.type}"
                )
        return f(*args, **kwargs)

    return wrapper


class runtime_validation_disabled:
    """Inside, :func:`runtime_validation` checks nothing."""

    def __init__(self):
        global _runtime_validation_enabled
        self.prev, _runtime_validation_enabled = _runtime_validation_enabled, False

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        global _runtime_validation_enabled
        _runtime_validation_enabled = self.prev


def runtime_validation(f):
    """Checks each sample that an ``__iter__`` gives against the type of its pipe."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @functools.wraps(f)
    def wrapper(self):
        for value in f(self):
            if _runtime_validation_enabled and not self.type.issubtype_of_instance(value):
                raise RuntimeError(
                    f"Expected an instance as subtype of {self.type}, but found {value}({type(value)})"
                )
            yield value

    return wrapper
