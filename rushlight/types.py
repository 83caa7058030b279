"""Names for annotations."""

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from os import PathLike
from typing import IO, Any, TypeAlias

from rushlight import Size, SymBool, SymFloat, SymInt, Tensor
from rushlight import device as _device
from rushlight import dtype as _dtype  # noqa: F401
from rushlight import layout as _layout  # noqa: F401
from rushlight import memory_format as memory_format

__all__ = ["Device", "FileLike", "Number"]

__capture__ = "through"  # Note [Capture marks]

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = Any
_size: TypeAlias = Size | list[_int] | tuple[_int, ...]
_symsize: TypeAlias = Size | Sequence[_int]
_dispatchkey: TypeAlias = _str
IntLikeType: TypeAlias = _int
FloatLikeType: TypeAlias = _float
BoolLikeType: TypeAlias = _bool
py_sym_types = (SymInt, SymFloat, SymBool)
Number: TypeAlias = _int | _float | _bool
_Number = (_int, _float, _bool)
FileLike: TypeAlias = _str | PathLike | IO
Device: TypeAlias = _device | _str | _int | None


def __getattr__(name):
    if name == "Storage":
        from rushlight.storage import TypedStorage, UntypedStorage

        return TypedStorage | UntypedStorage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
