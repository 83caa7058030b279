"""``__torch_function__``: how tensor subclasses and modes take over functions."""

import functools

import rushlight
from rushlight import _C

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic
handle_torch_function = _C._handle_torch_function
_disabled_torch_function_impl = _C._disabled_torch_function_impl


@functools.cache
def get_default_nowrap_functions():
    """Functions whose results stay plain tensors although a subclass took part."""
    tensor = rushlight.Tensor
    return (
        {tensor.grad.__get__, tensor._base.__get__, tensor._grad.__get__}
        if hasattr(tensor, "_grad")
        else set()
    )


def is_tensor_like(obj):
    """Whether the object is a tensor or defines ``__torch_function__``."""
    return type(obj) is rushlight.Tensor or hasattr(obj, "__torch_function__")


def _namespaces():
    """The public namespaces whose functions can be overridden."""
    tensor = rushlight.Tensor
    modules = (
        rushlight,
        rushlight.functional,
        rushlight.nn.functional,
        rushlight.linalg,
        rushlight.fft,
        rushlight.special,
    )
    return (*modules, tensor)


def get_ignored_functions():
    """Public functions that ``__torch_function__`` does not see."""
    names = (
        "tensor",
        "from_numpy",
        "is_tensor",
        "manual_seed",
        "load",
        "save",
        "set_default_dtype",
        "get_default_dtype",
    )
    return {getattr(rushlight, name) for name in names}


@functools.cache
def get_overridable_functions():
    """A dict from namespace to the functions in it that can be overridden."""
    operators = (type(_C._VariableFunctions.add), type(rushlight.Tensor.add))
    return {space: [f for f in vars(space).values() if isinstance(f, operators)] for space in _namespaces()}


def is_tensor_method_or_property(func):
    """Whether the function is reached through a tensor."""
    owner = getattr(func, "__objclass__", None)
    return type(func) is type(rushlight.Tensor.add) or owner is _C.TensorBase or func.__name__ == "__get__"


def resolve_name(f):
    """The public name of an overridable function."""
    owner = "torch.Tensor" if is_tensor_method_or_property(f) else "torch"
    return f"{owner}.{f.__name__}"


def wrap_torch_function(dispatcher):
    """Make a Python function overridable; ``dispatcher`` picks the arguments that decide."""

    def decorate(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


class TorchFunctionMode:
    """Sees every function call within its context: override ``__torch_function__``."""

    inner: "TorchFunctionMode"

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class enable_reentrant_dispatch:
    """Lets a ``__torch_dispatch__`` handler dispatch again; nothing hinders it here."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


def _get_current_function_mode():
    count = _C._len_torch_function_stack()
    return _C._get_function_stack_at(count - 1) if count else None


def _get_current_function_mode_stack():
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]
