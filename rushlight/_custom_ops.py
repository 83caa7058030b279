"""Custom operators by the names before `torch.library`: a declaration, then kernels and gradients by name."""

from rushlight.library import get_ctx, impl_abstract

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]


def _decorated(register, func):
    return register if func is None else register(func)


def custom_op(qualname, func_or_schema=None):
    """Declare an operator by a function with annotations, whose body never runs, or by a schema."""
    from rushlight._custom_op import impl as _impl

    if isinstance(func_or_schema, str):
        _impl.declare(qualname, func_or_schema)
        return lambda func: func

    def register(func):
        _impl.custom_op(qualname)(func)
        return func

    return _decorated(register, func_or_schema)


def impl(qualname, *, device_types=("cpu", "cuda"), func=None):
    """A kernel for device types."""
    from rushlight._custom_op.impl import known

    return _decorated(known(qualname).impl(device_types), func)


def impl_save_for_backward(qualname, *, func=None):
    """``func(inputs, output)`` gives what the backward pass needs."""
    from rushlight._custom_op.impl import known

    return _decorated(known(qualname).impl_save_for_backward(), func)


def impl_backward(qualname, output_differentiability=None, *, func=None):
    """``func(ctx, saved, *grads)`` gives a dict of gradients by the names of arguments."""
    from rushlight._custom_op.impl import known

    return _decorated(known(qualname).impl_backward(output_differentiability), func)


def _destroy(qualname):
    """Forget a declared operator."""
    from rushlight._custom_op.impl import global_registry

    global_registry[qualname]._destroy()
