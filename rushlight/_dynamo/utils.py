"""What packages ask the compiler's front end for."""

import functools
from collections import Counter, defaultdict

__all__ = ["clone_input", "counters", "is_compile_supported", "warn_once"]

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
