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

_set_grad_enabled, is_grad_enabled = _C._set_grad_enabled, _C.is_grad_enabled


class no_grad(_C._NoGrad, _NoParamDecoratorContextManager):
    """Nothing is recorded inside: results do not require gradients. A context manager and a decorator."""


class enable_grad(_C._EnableGrad, _NoParamDecoratorContextManager):
    """Operations are recorded inside, also within ``no_grad``. A context manager and a decorator."""


class set_grad_enabled(_DecoratorContextManager):
    """Turns recording on or off: at once when called, for a while when used as context manager or
    decorator."""

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.prev = is_grad_enabled()
        self.mode = mode
        _set_grad_enabled(mode)

    def __call__(self, orig_func):
        _set_grad_enabled(self.prev)
        return super().__call__(orig_func)

    def __enter__(self):
        _set_grad_enabled(self.mode)

    def __exit__(self, exc_type, exc_value, traceback):
        _set_grad_enabled(self.prev)

    def __repr__(self):
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def clone(self):
        return type(self)(self.mode)


class inference_mode(_DecoratorContextManager):
    """Like ``no_grad``, and tensors made inside can never take part in recording, which saves their
    bookkeeping."""

    def __new__(cls, mode=True):
        self = super().__new__(cls)
        if isinstance(mode, bool):
            return self
        self.mode = True
        return self(mode)

    def __init__(self, mode=True):
        self.mode = mode

    def __enter__(self):
        self.prev = _C.is_inference_mode_enabled()
        self._prev_grad = is_grad_enabled()
        _C._set_inference_mode(self.mode)
        if self.mode != self.prev:
            _set_grad_enabled(not self.mode)

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_inference_mode(self.prev)
        _set_grad_enabled(self._prev_grad)

    def clone(self):
        return type(self)(self.mode)


class set_multithreading_enabled(_DecoratorContextManager):
    """Whether a backward pass may use several threads for several devices."""

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
    layout (the default), or become ``.grad`` as they are."""

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
