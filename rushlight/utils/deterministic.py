"""What `use_deterministic_algorithms` does besides: settings are attributes of this module."""

import sys
from types import ModuleType

from rushlight import _C


class _Settings(ModuleType):
    @property
    def fill_uninitialized_memory(self):
        """Whether memory that nothing was written to (`empty`, `resize_`) holds NaN, or the largest integer,
        in deterministic mode; it costs the time of writing it."""
        return _C._device_switch("fill_uninitialized")

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        _C._device_switch("fill_uninitialized", mode)


sys.modules[__spec__.name].__class__ = _Settings
