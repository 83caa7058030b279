"""What packages ask the compiler's front end for."""

import contextlib
import functools
import sys
from collections import Counter, defaultdict

__all__ = ["clone_input", "counters", "disable_cache_limit", "is_compile_supported", "warn_once"]

# Numbers by subject that back ends and passes of packages count here.
counters: defaultdict = defaultdict(Counter)


def clone_input(x, *, dtype=None):
    """A copy of a tensor that is a leaf of its own, with its strides and whether it requires gradients."""
    import rushlight as torch

    with torch.no_grad():
        made = torch.empty_strided(x.shape, x.stride(), dtype=dtype or x.dtype, device=x.device)
        made.copy_(x)
    return made.requires_grad_(x.requires_grad)


def is_compile_supported(device_type):
    """Whether functions of tensors on a device can be compiled: on none."""
    return False


@functools.cache
def warn_once(msg, stacklevel=1):
    """A warning that is given once in a process."""
    import warnings

    warnings.warn(msg, stacklevel=stacklevel + 2)


@contextlib.contextmanager
def disable_cache_limit():
    """While it lasts, a function may be compiled for any number of shapes and settings."""
    from rushlight._dynamo import config

    limits = (
        "cache_size_limit",
        "recompile_limit",
        "accumulated_cache_size_limit",
        "accumulated_recompile_limit",
    )
    before = {name: getattr(config, name) for name in limits}
    for name in limits:
        setattr(config, name, sys.maxsize)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)
