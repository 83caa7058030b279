"""Functions whose results come later."""

import functools


def async_execution(fn):
    """Marks a function that returns a `torch.futures.Future`: who calls it remotely gets the future's result,
    and no thread of the callee waits for it."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    wrapper._wrapped_async_rpc_function = fn
    return wrapper
