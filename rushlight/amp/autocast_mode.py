"""Autocasting: a region in which operators choose the precision of their floating-point operands.

Matrix products, convolutions and attention run in the region's half type; losses, decompositions and others
that need
range or precision run in float32; the rest takes what comes. The lists are PyTorch's and live in the core."""

import functools
import warnings

import rushlight
from rushlight import _C
from rushlight._command.names import show_from

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_CASTING = ("cpu", "cuda")
_HALF_TYPES = (rushlight.bfloat16, rushlight.float16)
# The half type of each device type that can have regions.
_USUAL = dict.fromkeys(("mtia", "xpu", "mps", "ipu", "privateuseone"), rushlight.float16)
_USUAL.update(dict.fromkeys(("xla", "hpu", "maia"), rushlight.bfloat16))


def _type_of(function, device):
    """The type of a device that a program names: "cpu" for "cpu:0"."""
    if not isinstance(device, str):
        kind = type(device).__name__
        name = f"torch.{kind}" if isinstance(device, rushlight.device) else kind
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, not {name}")
    return rushlight.device(device).type


def _region_type(function, device):
    """`_type_of` where that type can have regions."""
    kind = _type_of(function, device)
    if kind not in _CASTING and kind not in _USUAL:
        raise RuntimeError("unknown device type for autocast in get_autocast_dispatch_key_from_device_type")
    return kind


def is_autocast_available(device_type: str) -> bool:
    """Whether there are regions of autocast for devices of this type. They cast on "cpu" and "cuda"; those of
    devices that are not here can be entered, as in PyTorch, and change nothing."""
    kind = _type_of("_is_autocast_available", device_type)
    return kind in _CASTING or kind in _USUAL


# Devices that are not here keep their settings too: programs ask before they look for the device.
_enabled_elsewhere: dict = {}
_dtypes_elsewhere: dict = {}


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether a region of autocast is active for the device type."""
    kind = _region_type("is_autocast_enabled", device_type)
    if kind in _CASTING:
        return _C._autocast_region(kind == "cuda")[0]
    return _enabled_elsewhere.get(kind, False)


def set_autocast_enabled(device_type, enabled=None) -> None:
    """Switches autocasting for the device type, or for "cuda" when called with the flag alone."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    kind = _region_type("set_autocast_enabled", device_type)
    if kind in _CASTING:
        dtype = get_autocast_dtype(kind)
        _C._autocast_switch(enabled, dtype, is_autocast_cache_enabled(), kind == "cuda")
    else:
        _enabled_elsewhere[kind] = enabled


def get_autocast_dtype(device_type: str):
    """The half type of the device type's regions."""
    kind = _type_of("get_autocast_dtype", device_type)
    if kind in _CASTING:
        return _C._autocast_region(kind == "cuda")[1]
    dtype = _dtypes_elsewhere.get(kind) or _USUAL.get(kind)
    if dtype is None:
        raise RuntimeError("unsupported scalarType")
    return dtype


def set_autocast_dtype(device_type: str, dtype) -> None:
    """Sets the half type of the device type's regions."""
    kind = _type_of("set_autocast_dtype", device_type)
    if kind in _CASTING:
        enabled = is_autocast_enabled(kind)
        _C._autocast_switch(enabled, dtype, is_autocast_cache_enabled(), kind == "cuda")
    else:
        _dtypes_elsewhere[kind] = dtype


def _switch_elsewhere(kind, enabled, dtype, cache_enabled):
    """`_C._autocast_switch` for devices that are not here."""
    before = is_autocast_enabled(kind), get_autocast_dtype(kind), is_autocast_cache_enabled()
    _enabled_elsewhere[kind], _dtypes_elsewhere[kind] = enabled, dtype
    set_autocast_cache_enabled(cache_enabled)
    return before


def _deprecated(device_type):
    """PyTorch's older functions for one device type."""

    def is_enabled():
        return is_autocast_enabled(device_type)

    def set_enabled(enabled):
        set_autocast_enabled(device_type, enabled)

    def get_dtype():
        return get_autocast_dtype(device_type)

    def set_dtype(dtype):
        set_autocast_dtype(device_type, dtype)

    return is_enabled, set_enabled, get_dtype, set_dtype


(is_autocast_cpu_enabled, set_autocast_cpu_enabled, get_autocast_cpu_dtype, set_autocast_cpu_dtype) = (
    _deprecated("cpu")
)
(_, _, get_autocast_gpu_dtype, set_autocast_gpu_dtype) = _deprecated("cuda")
is_autocast_cache_enabled = _C._autocast_cache_enabled
set_autocast_cache_enabled = _C._set_autocast_cache_enabled
clear_autocast_cache = _C._clear_autocast_cache
autocast_increment_nesting = _C._autocast_enter
autocast_decrement_nesting = _C._autocast_exit


class _Regions:
    """The regions of every device type as they are now; entered later, they are so again until the exit."""

    def __init__(self):
        self._cache_enabled = is_autocast_cache_enabled()
        self._now = [(kind == "cuda", *_C._autocast_region(kind == "cuda")) for kind in _CASTING]

    def __enter__(self):
        self._before = [
            (*_C._autocast_switch(enabled, dtype, self._cache_enabled, is_cuda), is_cuda)
            for is_cuda, enabled, dtype in self._now
        ]
        autocast_increment_nesting()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        for region in reversed(self._before):
            _C._autocast_switch(*region)
        return False


def autocast_decorator(autocast_instance, func):
    """`func` run inside the region."""

    @functools.wraps(func)
    def decorated(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    decorated.__script_unsupported = "@autocast() decorator is not supported in script mode"
    return decorated


class autocast:  # noqa: N801 - PyTorch's name
    """A region (context manager or decorator) of mixed precision on `device_type`.

    `dtype`: bfloat16 (default) or float16 on the CPU. `enabled=False` switches an outer region off. Casts
    of leaves that require gradients are kept until the outermost region ends, unless `cache_enabled=False`.
    A dtype or device that is not supported disables the region with a warning.

    Args:
        device_type (str): 'cpu' or 'cuda'.
        dtype (dtype or None): what is computed with; None is the device's own, bfloat16 on CPU.
        enabled (bool): whether anything happens.
        cache_enabled (bool or None): whether casts of weights are kept.

    Example:
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     y = torch.ones(2, 2) @ torch.ones(2, 2)
        >>> y.dtype
        torch.bfloat16
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.device = self._type = device_type
        if device_type == "cpu":
            self.fast_dtype = _C._autocast_region(False)[1] if dtype is None else dtype
            self._enabled = enabled and self._is_supported()
        else:
            if not isinstance(device_type, str):
                raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
            self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
            if not is_autocast_available(device_type):
                raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
            self._type = _type_of("autocast", device_type)
            self._enabled = enabled and (self._type not in _CASTING or self._is_supported())
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled

    def _is_supported(self):
        kinds = _HALF_TYPES
        if self._type == "cuda":
            if not rushlight.cuda.is_available():
                warnings.warn(
                    "CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=3
                )
                return False
            kinds = (*_HALF_TYPES, rushlight.float32)
        if self.fast_dtype in kinds:
            return True
        device = self._type.upper()
        warnings.warn(
            f"In {device} autocast, but the target dtype is not supported. Disabling autocast.\n"
            f"{device} Autocast only supports dtypes of {', '.join(map(str, kinds))} currently.",
            stacklevel=3,
        )
        return False

    def __enter__(self):
        if self._type in _CASTING:
            self._previous = _C._autocast_switch(
                self._enabled, self.fast_dtype, self._cache_enabled, self._type == "cuda"
            )
        else:
            self._previous = _switch_elsewhere(
                self._type, self._enabled, self.fast_dtype, self._cache_enabled
            )
        autocast_increment_nesting()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        if self._type in _CASTING:
            _C._autocast_switch(*self._previous, self._type == "cuda")
        else:
            _switch_elsewhere(self._type, *self._previous)
        return False

    def __call__(self, func):
        return autocast_decorator(self, func)


def _cast(value, device_type, dtype):
    """Floating-point tensors of a device, also inside containers, in `dtype`; float64 stays."""
    if isinstance(value, rushlight.Tensor):
        eligible = (
            value.is_floating_point()
            and value.device.type == device_type
            and value.dtype != rushlight.float64
        )
        return value.to(dtype) if eligible else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_cast(v, device_type, dtype) for v in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*items)
        return type(value)(items)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorates ``forward`` of an autograd Function: inputs are cast to `cast_inputs`, and the body runs
    without
    autocasting; without `cast_inputs` it runs as the caller does. ``backward`` under `custom_bwd` sees the
    same."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        context = args[0]
        context._dtype = get_autocast_dtype(device_type)
        context._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not context._fwd_used_autocast:
            return fwd(*args, **kwargs)
        context._fwd_used_autocast = False
        with autocast(device_type=device_type, enabled=False):
            kind = _type_of("custom_fwd", device_type)
            return fwd(*_cast(args, kind, cast_inputs), **_cast(kwargs, kind, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type):
    """Decorates ``backward`` of an autograd Function whose ``forward`` is under `custom_fwd`."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        context = args[0]
        with autocast(device_type=device_type, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return bwd(*args, **kwargs)

    return decorated


def _enter_autocast(*region):
    """Starts a region of `autocast` and returns it: recorded programs call this and `_exit_autocast`."""
    mode = autocast(*region)
    mode.__enter__()
    return mode


def _exit_autocast(mode):
    mode.__exit__(None, None, None)


show_from("", is_autocast_enabled, set_autocast_enabled, get_autocast_dtype, set_autocast_dtype)
