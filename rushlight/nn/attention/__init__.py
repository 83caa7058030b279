"""Choosing among the ways to compute attention."""

import contextlib
import enum

from rushlight.backends._attention import SDPAParams
from rushlight.nn.attention._registry import (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
)

__all__ = [
    "SDPAParams",
    "SDPBackend",
    "WARN_FOR_UNFUSED_KERNELS",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

__package_capture__ = "through"  # Note [Capture marks]

# Whether to tell why a fused kernel could not be used.
WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """The kernels of scaled_dot_product_attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    __repr__ = enum.Enum.__repr__


_allowed = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
]


def _cur_sdpa_kernel_backends(with_priority=False):
    return list(_allowed)


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Within the context, the backends that attention is asked to use; all compute the same."""
    global _allowed
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    before = _allowed
    _allowed = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    try:
        yield {}
    finally:
        _allowed = before


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.nn.attention import bias as bias
    from rushlight.nn.attention import flex_attention as flex_attention


def __getattr__(name):
    if name in ("bias", "flex_attention"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
