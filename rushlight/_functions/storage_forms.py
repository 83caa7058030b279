"""What both kinds of storages share: their elements in other types, their bytes on other devices."""

from typing import Any

import rushlight


class Conversions:
    """`storage.double()` and its like: the elements, converted, in a storage of their own."""

    def double(self):
        return _converted(self, rushlight.float64)

    def float(self):
        return _converted(self, rushlight.float32)

    def half(self):
        return _converted(self, rushlight.float16)

    def bfloat16(self):
        return _converted(self, rushlight.bfloat16)

    def float8_e5m2(self):
        return _converted(self, rushlight.float8_e5m2)

    def float8_e4m3fn(self):
        return _converted(self, rushlight.float8_e4m3fn)

    def float8_e5m2fnuz(self):
        return _converted(self, rushlight.float8_e5m2fnuz)

    def float8_e4m3fnuz(self):
        return _converted(self, rushlight.float8_e4m3fnuz)

    def long(self):
        return _converted(self, rushlight.int64)

    def int(self):
        return _converted(self, rushlight.int32)

    def short(self):
        return _converted(self, rushlight.int16)

    def char(self):
        return _converted(self, rushlight.int8)

    def byte(self):
        return _converted(self, rushlight.uint8)

    def bool(self):
        return _converted(self, rushlight.bool)

    def complex_double(self):
        return _converted(self, rushlight.complex128)

    def complex_float(self):
        return _converted(self, rushlight.complex64)


def _converted(storage, dtype):
    own = getattr(storage, "dtype", rushlight.uint8)
    elements = rushlight.empty(0, dtype=own, device=storage.device).set_(storage.untyped())
    return rushlight.TypedStorage(
        wrap_storage=elements.to(dtype).untyped_storage(), dtype=dtype, _internal=True
    )


class Devices:
    """Where the bytes are, and copies of them elsewhere. `_with_bytes` makes a storage of the same kind."""

    is_sparse = False

    @property
    def is_cuda(self: Any):
        return self.device.type == "cuda"

    @property
    def is_hpu(self: Any):
        return self.device.type == "hpu"

    def get_device(self: Any):
        """The device's index; None for one that has none, as the CPU."""
        return self.device.index

    def cpu(self: Any):
        return self.to(device="cpu")

    def cuda(self, device=None, non_blocking=False):
        return self.to(device=_numbered("cuda", device), non_blocking=non_blocking)

    def hpu(self, device=None, non_blocking=False):
        return self.to(device=_numbered("hpu", device), non_blocking=non_blocking)

    def mps(self):
        return self.to(device="mps")

    def to(self: Any, *, device, non_blocking=False):
        """The storage itself where it is there, else a copy on that device."""
        if rushlight.device(device) == self.device:
            return self
        return self._with_bytes(as_bytes(self).to(device, non_blocking=non_blocking).untyped_storage())

    def pin_memory(self: Any, device="cuda"):
        """A copy in memory that the accelerator reads without the processor's help."""
        if rushlight.device(device).type not in ("cuda", "mps", "privateuse1"):
            raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
        return self._with_bytes(as_bytes(self).pin_memory().untyped_storage())


def _numbered(kind, device):
    """The device of a kind that `cuda(device)` means: the current one, a number, or a device."""
    if device is None or isinstance(device, int):
        return rushlight.device(kind) if device is None else rushlight.device(kind, device)
    return rushlight.device(device)


def as_bytes(storage):
    """A tensor of the bytes of either kind of storage, which it shares."""
    return rushlight.empty(0, dtype=rushlight.uint8, device=storage.device).set_(storage.untyped())
