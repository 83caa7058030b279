"""The former home of `torch.amp`, with the device type fixed to "cuda"."""

from functools import partial

import rushlight as torch
from rushlight import amp as _amp
from rushlight._command.submodules import submodules_of

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]


def _deprecated(old, new):
    import warnings

    warnings.warn(
        f"`torch.cuda.amp.{old}` is deprecated. Please use `torch.amp.{new}` instead.", FutureWarning, 3
    )


def amp_definitely_not_available():
    """Whether mixed precision on CUDA is out of the question."""
    return not torch.cuda.is_available()


class autocast(_amp.autocast):
    """`torch.amp.autocast("cuda", ...)`."""

    def __init__(self, enabled=True, dtype=torch.float16, cache_enabled=True):
        _deprecated("autocast(args...)", "autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(_amp.GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`."""

    def __init__(
        self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True
    ):
        _deprecated("GradScaler(args...)", "GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """`torch.amp.custom_fwd` for CUDA."""
    _deprecated("custom_fwd(args...)", "custom_fwd(args..., device_type='cuda')")
    if fwd is None:
        return partial(_amp.custom_fwd, device_type="cuda", cast_inputs=cast_inputs)
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """`torch.amp.custom_bwd` for CUDA."""
    _deprecated("custom_bwd(args...)", "custom_bwd(args..., device_type='cuda')")
    return _amp.custom_bwd(bwd, device_type="cuda")


__getattr__ = submodules_of(__name__)
