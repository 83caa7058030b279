"""Names that PyTorch has in `torch._C._nn`, `_linalg`, `_fft` and `_special` for functions that are elsewhere
here: `_special.special_erf` is `_special.erf`, and what is no function is the operator of that name."""

import rushlight
from rushlight import _C

_OTHERWISE = {"log_sigmoid": "logsigmoid"}


def function_of(space, name):
    """What `torch._C._<space>.<name>` is when the module has no such attribute."""
    functions = vars(getattr(_C, f"_{space}"))
    own = functions.get(_OTHERWISE.get(name) or name.removeprefix(f"{space}_"))
    if own is not None:
        return own
    if space == "nn":
        from rushlight.nn import _kernel_names

        if name in _kernel_names.__all__:
            return getattr(_kernel_names, name)
    packet = None if name.startswith("__") else getattr(rushlight.ops.aten, name, None)
    if packet is None:
        raise AttributeError(f"module 'torch._C._{space}' has no attribute {name!r}")
    return packet
