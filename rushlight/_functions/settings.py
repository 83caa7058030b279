"""Process-wide settings that are kept in Python."""

import rushlight
from rushlight import _C
from rushlight._command.names import show_public_from

_state = {
    "deterministic": False,
    "warn_only": False,
    "matmul": "highest",
    "warn_always": False,
    "interop_threads": 1,
}


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Ask for results that do not vary between runs. Kernels on the CPU are always deterministic; memory that
    nothing was written to is filled (`torch.utils.deterministic`). Operators whose definition leaves open
    which of several values for one place wins (`put_`, the unpooling layers) are refused, or warned of."""
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            where = " (position 1)" if name == "mode" else ""
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name}'{where} must be bool, "
                f"not {type(value).__name__}"
            )
    _state.update(deterministic=mode, warn_only=warn_only)
    _C._device_switch("deterministic_warn_only", warn_only)
    _C._device_switch("deterministic_algorithms", mode)


def are_deterministic_algorithms_enabled():
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    return _state["warn_only"]


class use_batch_invariant:
    """Ask that a row's result does not depend on the batch it stands in: linear layers, convolutions,
    attention, normalisation and all that works row by row give the same bits for a batch of 1 as for one of
    512, forwards and in the gradients of their inputs, and on any number of threads. Products are sums in one
    fixed order, which AVX2 and AVX-512 share.

    It holds for the process from the call on; as a context manager, for the length of the block:

    >>> with torch.use_batch_invariant(True):
    ...     y = model(x)

    What it costs and what it leaves out stands in docs/determinism.md."""

    def __init__(self, mode=True):
        if not isinstance(mode, bool):
            raise TypeError(f"use_batch_invariant(): argument 'mode' must be bool, not {type(mode).__name__}")
        self._before = _C._device_switch("batch_invariant", mode)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        _C._device_switch("batch_invariant", self._before)


def is_batch_invariant_enabled():
    """Whether `use_batch_invariant` holds."""
    return _C._device_switch("batch_invariant")


def set_deterministic_debug_mode(debug_mode):
    """ "default", "warn" or "error" (or 0, 1, 2)."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    names = ("default", "warn", "error")
    mode = names.index(debug_mode) if debug_mode in names else debug_mode
    if mode not in (0, 1, 2):
        expected = "one of `default`, `warn`, `error`" if isinstance(mode, str) else "0, 1, or 2"
        raise RuntimeError(f"invalid value of debug_mode, expected {expected}, but got {debug_mode}")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode():
    return (1 if _state["warn_only"] else 2) if _state["deterministic"] else 0


def set_float32_matmul_precision(precision):
    """ "highest", "high" or "medium"; products on the CPU are always computed in full float32, those on CUDA
    in TF32 below "highest"."""
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in ("highest", "high", "medium"):
        import warnings

        text = f"{precision} is not one of 'highest', 'high', or 'medium'; the call has no effect."
        warnings.warn(text, UserWarning, stacklevel=2)
        return
    _state["matmul"] = precision
    _C._device_switch("matmul_tf32", precision != "highest")


def get_float32_matmul_precision():
    if _C._device_switch("matmul_tf32"):
        return "high" if _state["matmul"] == "highest" else _state["matmul"]
    return "highest"


def set_warn_always(b):
    _state["warn_always"] = bool(b)
    _C._set_warn_always(bool(b))


def is_warn_always_enabled():
    return _state["warn_always"]


def get_num_interop_threads():
    return _state["interop_threads"]


def set_num_interop_threads(n):
    """Kept for programs that call it; operators run one after another here."""
    if not isinstance(n, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(n).__name__}")
    if not 0 < n < 2**31:
        raise RuntimeError(f"set_num_interop_threads: expected a positive number of threads, got {n}")
    _state["interop_threads"] = n


def set_flush_denormal(mode):
    """Take numbers below the smallest normal one for zero in this thread; False where that cannot be had."""
    return _C._set_flush_denormal(mode)


def set_default_tensor_type(t):
    """Set the default dtype from a legacy type, ``torch.DoubleTensor`` for instance."""
    import warnings

    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives.",
        stacklevel=2,
    )
    if isinstance(t, str):
        t = getattr(rushlight, t.removeprefix("torch."), None)
    if getattr(t, "__module__", "").endswith(".cuda") and not rushlight.cuda.is_available():
        raise TypeError(f"type torch.cuda.{t.__name__} not available. Torch not compiled with CUDA enabled.")
    if not hasattr(t, "dtype"):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    _C.set_default_dtype(t.dtype)


def set_default_device(device):
    """Make new tensors on this device from now on; None takes it back."""
    from rushlight.utils import _device

    _device.set_default(device)


def get_default_device():
    from rushlight.utils import _device

    return _device.current() or rushlight.device("cpu")


def set_vital(vital, attribute, value):
    """Deprecated, as in PyTorch, which records nothing either; loaders of older packages call it."""
    import warnings

    from rushlight._command.names import program_level

    warnings.warn("'set_vital' is deprecated, please do not call", stacklevel=program_level())


show_public_from("", globals())
