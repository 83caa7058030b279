"""Switches that say whether operations are recorded."""

from rushlight import _C
from rushlight.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

__capture__ = "through"  # Note [Capture marks]

_set_grad_enabled, is_grad_enabled = _C._set_grad_enabled, _C.is_grad_enabled


class no_grad(_C._NoGrad, _NoParamDecoratorContextManager):
    """Nothing is recorded inside: results do not require gradients. A context manager and a decorator.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __reduce__(self):  # modules that keep one are copied
        return type(self), ()


class enable_grad(_C._EnableGrad, _NoParamDecoratorContextManager):
    """Operations are recorded inside, also within ``no_grad``. A context manager and a decorator."""

    def __reduce__(self):
        return type(self), ()


class set_grad_enabled(_C._SetGrad, _DecoratorContextManager):
    """Turns recording on or off: at once when called, for a while when used as context manager or
    decorator."""

    def __call__(self, orig_func):
        _set_grad_enabled(self.prev)
        return super().__call__(orig_func)

    def __repr__(self):
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def __reduce__(self):
        return _made_aside, (type(self), self.mode)

    def clone(self):
        return type(self)(self.mode)


def _made_aside(cls, mode):
    before = is_grad_enabled()
    made = cls(mode)  # which turns recording on or off
    _set_grad_enabled(before)
    return made


class inference_mode(_C._InferenceMode, _DecoratorContextManager):
    """Like ``no_grad``, and tensors made inside can never take part in recording, which saves their
    bookkeeping."""

    def clone(self):
        return type(self)(self.mode)

    def __reduce__(self):
        return type(self), (self.mode,)


class set_multithreading_enabled(_DecoratorContextManager):
    """Whether a backward pass may use several threads for several devices: at once, or for a while as a
    context.

    Args:
        mode (bool): whether it may.

    Example:
        >>> with torch.autograd.set_multithreading_enabled(False):
        ...     torch.autograd.is_multithreading_enabled()
        False
    """

    def __init__(self, mode):
        self.prev = _C._is_multithreading_enabled()
        self.mode = mode
        _C._set_multithreading_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_multithreading_enabled(self.prev)

    def clone(self):
        return type(self)(self.mode)


class enforce_grad_layout_policy(_DecoratorContextManager):
    """Whether gradients that lie in memory otherwise than their parameters are copied into the parameters'
    layout
    (the default), or become `.grad` as they are.

    Args:
        enable (bool): whether they are copied.

    Example:
        >>> with torch.autograd.enforce_grad_layout_policy(False):
        ...     pass
    """

    def __init__(self, enable=True):
        self.prev, self.mode = _C._is_grad_layout_enforcement_enabled(), enable
        _C._set_grad_layout_enforcement_enabled(enable)

    def __call__(self, orig_func):
        _C._set_grad_layout_enforcement_enabled(self.prev)
        return super().__call__(orig_func)

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_grad_layout_enforcement_enabled(self.prev)

    def clone(self):
        return type(self)(self.mode)


class _unsafe_preserve_version_counter(_DecoratorContextManager):
    """Writes to the tensors inside are not counted: the program knows that no saved value is lost."""

    def __init__(self, tensors):
        self.tensors = (tensors,) if isinstance(tensors, _C.TensorBase) else tuple(tensors)
        self.versions = tuple(t._version for t in self.tensors)

    def __enter__(self):
        pass

    def __exit__(self, *error):
        for tensor, version in zip(self.tensors, self.versions, strict=True):
            _C._set_version(tensor, version)

    def clone(self):
        return type(self)(self.tensors)
