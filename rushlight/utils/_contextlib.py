"""Context managers that also decorate functions, including generator functions."""

from functools import wraps

__capture__ = "through"  # Note [Capture marks]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    from typing_extensions import Self

    _F = TypeVar("_F", bound=Callable[..., Any])

_GENERATOR = 0x20 | 0x200  # code flags of generator and asynchronous generator functions


def _is_generator_function(func):
    while hasattr(func, "__wrapped__") and not hasattr(func, "__code__"):
        func = func.__wrapped__
    return bool(getattr(getattr(func, "__code__", None), "co_flags", 0) & _GENERATOR)


def context_decorator(make, func):
    """``func`` inside the context that ``make()`` gives, entered anew for every call."""
    if isinstance(func, type):
        import warnings

        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only "
            "decorate functions or methods. To preserve the current behavior of class decoration, you can "
            "directly decorate "
            "the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
        return lambda *args, **kwargs: _call_inside(make, func, args, kwargs)
    if _is_generator_function(func):
        return _wrap_generator(make, func)

    @wraps(func)
    def inside(*args, **kwargs):
        with make():
            return func(*args, **kwargs)

    return inside


def _call_inside(make, func, args, kwargs):
    with make():
        return func(*args, **kwargs)


def _wrap_generator(make, func):
    """The context holds while the generator runs, and not in its caller between two of its values."""

    @wraps(func)
    def inside(*args, **kwargs):
        generator = func(*args, **kwargs)
        try:
            with make():
                value = generator.send(None)
            while True:
                try:
                    request = yield value
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as e:
                    with make():
                        value = generator.throw(e)
                else:
                    with make():
                        value = generator.send(request)
        except StopIteration as e:
            return e.value

    return inside


class _DecoratorContextManager:
    """Base of context managers that may be used as ``@cm(...)``."""

    def __call__(self, orig_func: "_F") -> "_F":
        plain = (
            type(self).clone is _DecoratorContextManager.clone
        )  # then the function need not hold this object
        return context_decorator(type(self) if plain else self.clone, orig_func)

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError

    def clone(self):
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """As above, and as ``@cm`` without parentheses."""

    if TYPE_CHECKING:

        @overload
        def __new__(cls, orig_func: "_F") -> "_F": ...  # type: ignore[misc]
        @overload
        def __new__(cls, orig_func: None = None) -> "Self": ...
        def __new__(cls, orig_func=None) -> "Any": ...
        def __enter__(self) -> "Any": ...
        def __exit__(self, exc_type, exc_value, traceback) -> None: ...
    else:

        def __new__(cls, orig_func=None):
            self = super().__new__(cls)
            return self if orig_func is None else self(orig_func)
