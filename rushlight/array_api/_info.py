"""What the namespace says of itself."""

import rushlight as torch
from rushlight.array_api._dtypes import KINDS, isdtype

_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
).split()


class __array_namespace_info__:
    """Capabilities, devices and dtypes, as the standard asks for them."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        return torch.get_default_device()

    def devices(self):
        return [torch.device("cpu")]

    def default_dtypes(self, *, device=None):
        real = torch.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": torch.complex128 if real == torch.float64 else torch.complex64,
            "integral": torch.int64,
            "indexing": torch.int64,
        }

    def dtypes(self, *, device=None, kind=None):
        dtypes = {name: getattr(torch, name) for name in _NAMES}
        if kind is None:
            return dtypes
        if any(k not in KINDS for k in ((kind,) if isinstance(kind, str) else kind)):
            raise ValueError(f"dtypes: unrecognized kind {kind!r}; expected one of {', '.join(KINDS)}")
        return {name: dtype for name, dtype in dtypes.items() if isdtype(dtype, kind)}
