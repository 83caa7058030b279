"""What packages ask the compiler's front end for."""

import functools
from collections import Counter, defaultdict

__all__ = ["counters", "is_compile_supported", "warn_once"]

# Numbers by subject that back ends and passes of packages count here.
counters: defaultdict = defaultdict(Counter)


def is_compile_supported(device_type):
    """Whether functions of tensors on a device can be compiled: on none."""
    return False


@functools.cache
def warn_once(msg, stacklevel=1):
    """A warning that is given once in a process."""
    import warnings

    warnings.warn(msg, stacklevel=stacklevel + 2)
