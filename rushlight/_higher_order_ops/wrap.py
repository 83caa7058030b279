"""Parts of a program that run in a mode of their own: operators that take a function and what it is given."""

import rushlight as torch
from rushlight._higher_order_ops.operator import HigherOrderOperator

__capture__ = "through"  # Note [Capture marks]


class WrapWithSetGradEnabled(HigherOrderOperator):
    """``operator(enabled, function, *args)`` runs a function with gradients recorded or not."""

    def __init__(self):
        super().__init__("wrap_with_set_grad_enabled")

    def __call__(self, enable_grad, wrapped_func, *args, **kwargs):
        with torch.set_grad_enabled(enable_grad):
            return wrapped_func(*args, **kwargs)


wrap_with_set_grad_enabled = WrapWithSetGradEnabled()


class WrapWithAutocast(HigherOrderOperator):
    """``operator(device_type, dtype, enabled, cache_enabled, function, *args)`` runs it under autocast."""

    def __init__(self):
        super().__init__("wrap_with_autocast")

    def __call__(self, device_type, dtype, enabled, cache_enabled, wrapped_func, *args, **kwargs):
        with torch.autocast(device_type, dtype, enabled, cache_enabled):
            return wrapped_func(*args, **kwargs)


wrap_with_autocast = WrapWithAutocast()
