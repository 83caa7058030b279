"""The text of values in scripts: what `str`, `print` and formats write there, which is not Python's.

Whole floats end in a point, others have 17 digits, and text inside of lists has no quotes."""

from __future__ import annotations

import math
from typing import Any

from rushlight import Size

__all__ = ["formatted", "printed", "text_of"]


def text_of(value: Any) -> str:
    kind = type(value)
    if kind is float:
        return _of_float(value)
    if kind is complex:
        return f"{_of_float(value.real)}{'-' if value.imag < 0 else '+'}{_of_float(abs(value.imag))}j"
    if kind is Size or isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, tuple):
        parts = ", ".join(map(text_of, value))
        return f"({parts},)" if len(value) == 1 else f"({parts})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{text_of(k)}: {text_of(v)}' for k, v in value.items())}}}"
    return str(value)


def _of_float(value):
    if not math.isfinite(value):
        return str(value)
    if value.is_integer() and abs(value) < 2.0**63:  # which C++ prints as a whole number
        return f"{int(value)}."
    return f"{value:.17g}"


def printed(*values: Any) -> None:
    print(*map(text_of, values))


def formatted(text: Any, *values: Any) -> str:
    """``text.format(…)``: braces stand for the values in turn, and anything else for itself."""
    if type(text) is not str:
        return text.format(*values)
    parts = text.split("{}")
    if len(parts) - 1 > len(values):
        raise RuntimeError(f"Too few arguments for format string: {text}")
    filled = [part for pair in zip(parts, map(text_of, values), strict=False) for part in pair]
    return "".join((*filled[: 2 * len(parts) - 2], parts[-1]))
