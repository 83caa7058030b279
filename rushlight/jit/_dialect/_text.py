"""Literals and types as the code of PyTorch's archives writes them."""

from __future__ import annotations

import math

import rushlight
from rushlight.jit import _types as t

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Unwritable", "literal", "number_of_kind", "quoted", "type_text"]


class Unwritable(RuntimeError):
    """What has no words in archives of PyTorch's."""


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def quoted(text: str) -> str:
    """A text in quotes; what is not ASCII as its bytes in UTF-8."""
    out = []
    for letter in text:
        if letter in _ESCAPES:
            out.append(_ESCAPES[letter])
        elif " " <= letter <= "~":
            out.append(letter)
        else:
            out += [f"\\{byte:03o}" for byte in letter.encode()]
    return f'"{"".join(out)}"'


_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc")
_SCHEMES = ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric")


def number_of_kind(value: Any) -> int:
    """The number by which scripts know an element type, a layout, a memory format or a scheme."""
    from rushlight.jit._torchscript_tensors import code_of

    if isinstance(value, rushlight.dtype):
        return code_of(value)
    short = str(value).rpartition(".")[2]
    for names in (_FORMATS, _LAYOUTS, _SCHEMES):
        if short in names:
            return names.index(short)
    raise Unwritable(f"the constant {value}")


def literal(value: Any) -> str:
    """A constant as an expression."""
    if value is None or type(value) in (bool, int):
        return str(value)
    if type(value) is float:
        return _real(value)
    if type(value) is complex:
        return f"complex({_real(value.real)}, {_real(value.imag)})"
    if type(value) is str:
        return quoted(value)
    if isinstance(value, rushlight.device):
        return f"torch.device({quoted(str(value))})"
    if isinstance(value, t.DTYPE_LIKE):
        return str(number_of_kind(value))
    if isinstance(value, rushlight.Size):
        value = list(value)
    if type(value) is tuple:
        return f"({''.join(f'{literal(v)}, ' for v in value)})" if value else "()"
    if type(value) is list and value:
        return f"[{', '.join(map(literal, value))}]"
    raise Unwritable(f"a constant of type {type(value).__name__}")


def _real(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "(-inf)"
    text = repr(value)
    return f"({text})" if value < 0 else text


_PLAIN = {
    "Tensor": "Tensor", "Inferred": "Tensor", "int": "int", "float": "float", "bool": "bool", "str": "str",
    "complex": "complex", "number": "number", "NoneType": "NoneType", "Any": "Any", "Device": "Device",
    "Generator": "Generator", "Stream": "Stream",
}  # fmt: skip


def type_text(kind: t.Type, path_of: Callable[[Any], str]) -> str:
    """A type's text; ``path_of`` tells the name in the archive of a class of the program."""
    if kind.kind in _PLAIN:
        return _PLAIN[kind.kind]
    inside = [] if kind.name is not None else [type_text(part, path_of) for part in kind.args]
    if kind.kind == "Tuple":
        return f"Tuple[{', '.join(inside) or '()'}]"
    if kind.kind in ("List", "Dict", "Optional", "Union", "Future", "Await"):
        return f"{kind.kind}[{', '.join(inside)}]"
    if kind.kind in ("Class", "NamedTuple", "Enum", "Interface") and kind.python is not None:
        return path_of(kind.python)
    if kind.kind == "NamedTuple":  # what an operator gives
        return f"Tuple[{', '.join(type_text(part, path_of) for part in kind.args)}]"
    raise Unwritable(f"a value of type {kind}")
