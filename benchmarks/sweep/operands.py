"""Operands of a call as NumPy arrays, and calls like it with more elements. Imports neither module."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

# How a call is enlarged, the first that PyTorch takes: every dimension; the same with sizes among the other
# arguments; dimensions behind the first two, of all operands or of the first; the first; the last.
WAYS = ("all", "all and sizes", "image", "first image", "batch", "last")
OF_IMAGES = ("first image", "image", "batch")  # filters stay as they are
OF_SIZES = ("all and sizes", *WAYS)  # the size of a result is an argument


@dataclass(frozen=True, eq=False)
class Operand:
    """An array that becomes a tensor. `learned`: it may get a gradient; `layout`: of a sparse tensor."""

    values: np.ndarray
    learned: bool = True
    layout: str = ""
    blocks: tuple = ()


@dataclass(frozen=True, eq=False)
class Call:
    function: str
    args: tuple
    kwargs: dict[str, Any]


def operands(value: Any) -> Iterator[Operand]:
    if isinstance(value, Operand):
        yield value
    elif isinstance(value, Call):
        yield from operands(value.args)
        yield from operands(list(value.kwargs.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from operands(item)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same arguments with every leaf changed; a shape is one leaf."""
    if isinstance(value, Call):
        return replace(value, args=mapped(value.args, change), kwargs=mapped(value.kwargs, change))
    if isinstance(value, dict):
        return {name: mapped(item, change) for name, item in value.items()}
    if isinstance(value, (list, tuple)) and not is_shape(value):
        return type(value)(mapped(item, change) for item in value)
    return change(value)


def is_shape(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(type(item) is int for item in value)


def elements(call: Call) -> int:
    return max((operand.values.size for operand in operands(call)), default=0)


def enlarged(call: Call, way: str, count: int, seed: int) -> Call | None:
    """A call whose largest operand has about `count` elements; None where this way does not apply."""
    found = list(operands(call))
    if not found:
        return _larger_numbers(call, count) if way == "all and sizes" else None
    first = max(found, key=lambda operand: operand.values.size).values
    if way == "first image":
        first = next((o.values for o in found if o.values.ndim > 2), first)
    free = _free(way, first.shape)
    if first.size == 0 or not free or count <= first.size:
        return None
    factor = max(2, round((count / first.size) ** (1 / len(free))))
    random = np.random.default_rng(seed)

    def size_of(values: np.ndarray) -> tuple[int, ...]:
        return _scaled(values.shape, way, factor, values.shape == first.shape, first.shape)

    if sum(math.prod(size_of(operand.values)) for operand in found) > 8 * count:
        return None  # operands of more dimensions than the one that was measured

    def change(value: Any) -> Any:
        if isinstance(value, Operand):
            shape = size_of(value.values)
            return replace(value, values=_filled(value.values, shape, random, value.layout))
        if way == "all and sizes" and is_shape(value):
            return type(value)(size * factor if size > 1 else size for size in value)
        return value

    return mapped(call, change)


def _larger_numbers(call: Call, count: int) -> Call | None:
    """Of calls without operands: whole numbers are sizes."""
    sizes = [item for value in call.args for item in (value if is_shape(value) else [value])]
    whole = [size for size in sizes if type(size) is int and size > 1]
    if not whole:
        return None
    factor = max(2, round((count / math.prod(whole)) ** (1 / len(whole))))

    def change(value: Any) -> Any:
        if is_shape(value):
            return type(value)(change(item) for item in value)
        return value * factor if type(value) is int and value > 1 else value

    return replace(call, args=mapped(call.args, change))


def _free(way: str, shape: tuple[int, ...]) -> list[int]:
    """The dimensions that grow."""
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    if way in ("image", "first image"):
        return [axis for axis in axes if axis >= 2]
    if way == "batch":
        return [0] if len(shape) > 1 and shape[0] > 0 else []
    if way == "last":
        return [len(shape) - 1] if shape and shape[-1] > 1 else []
    return axes


def _scaled(
    shape: tuple[int, ...], way: str, factor: int, like_first: bool, first: tuple[int, ...]
) -> tuple[int, ...]:
    if way in ("all", "all and sizes"):
        return tuple(size * factor if size > 1 else size for size in shape)
    if way in ("image", "first image"):
        if way == "first image" and not like_first:
            return shape
        return tuple(size * factor if i >= 2 and size > 1 else size for i, size in enumerate(shape))
    axis = 0 if way == "batch" else -1
    if not shape or shape[axis] != first[axis]:
        return shape
    larger = list(shape)
    larger[axis] *= factor
    return tuple(larger)


def _filled(
    values: np.ndarray, shape: tuple[int, ...], random: np.random.Generator, layout: str
) -> np.ndarray:
    """Numbers of the same range and structure."""
    if shape == values.shape:
        return values
    if values.dtype == bool:
        return random.random(shape) < min(max(float(values.mean()), 0.05), 0.95)
    if np.iscomplexobj(values):
        parts = [_filled(part, shape, random, layout) for part in (values.real, values.imag)]
        return parts[0] + 1j * parts[1]
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0, 1)
    if values.dtype.kind in "iu":
        made = random.integers(low, high + 1, shape, dtype=values.dtype)
        ordered = values.ndim == 1 and values.size > 2 and (np.diff(values) >= 0).all()
        return np.concatenate([values[:1], np.sort(made[1:])]) if ordered else made  # offsets, say
    made = random.random(shape)
    made *= high - low
    made += low
    if layout:
        made *= random.random(shape) < 0.05
    return _structured(values, made)


def _structured(values: np.ndarray, made: np.ndarray) -> np.ndarray:
    """Lines stay in order; square matrices symmetric, positive, triangular or heavy on their diagonal."""
    if values.ndim == 1 and values.size > 4 and (np.diff(values) > 0).all():
        return np.sort(made)
    size = values.shape[-1] if values.ndim >= 2 else 0
    if size < 2 or values.shape[-2] != size or made.shape[-1] != made.shape[-2]:
        return made
    if not np.isfinite(values).all():
        return made
    diagonal = np.arange(made.shape[-1])
    transposed = np.swapaxes(values, -1, -2)
    heavy = np.abs(values).sum(-1) - np.abs(values[..., np.arange(size), np.arange(size)])
    if np.allclose(values, transposed):
        made = (made + np.swapaxes(made, -1, -2)) / 2
        if np.linalg.eigvalsh(values).min() > 0:
            made[..., diagonal, diagonal] += made.shape[-1] * np.abs(values).max()
    elif np.allclose(values, np.tril(values)) or np.allclose(values, np.triu(values)):
        made = np.tril(made) if np.allclose(values, np.tril(values)) else np.triu(made)
        made[..., diagonal, diagonal] += made.shape[-1] * np.abs(values).max()
    elif (heavy < np.abs(values[..., np.arange(size), np.arange(size)])).all():
        made[..., diagonal, diagonal] += made.shape[-1] * np.abs(values).max()
    return made
