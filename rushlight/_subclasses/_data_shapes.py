"""Results whose sizes depend on data: fake tensors at sizes that are samples."""

from collections.abc import Callable
from typing import Any

import rushlight as torch

from .fake_tensor import DynamicOutputShapeException


def result(mode, func, args, kwargs):
    """What an operator gives, with a sample for the size that it finds; the mode's numbers know of it."""
    make = _MAKERS.get(func._opname)
    if make is None:
        raise DynamicOutputShapeException(func)
    name, size = mode.data_numbers.new(is_size=True)
    given, place = make(mode, func, size, *args, **kwargs)
    first = given[0] if isinstance(given, tuple) else given
    mode.data_numbers.origins[name] = first, place
    if mode.data_numbers.tracer is not None:
        first.data_sizes = {place: name}
    return given


def _empty(mode, like, shape, dtype=None):
    meta = torch.empty(shape, dtype=dtype or like.dtype, device="meta")
    return mode.from_meta(meta, like.device)


def _nonzero(mode, func, size, x):
    return _empty(mode, x, (size, x.dim()), torch.int64), 0


def _masked_select(mode, func, size, x, mask):
    return _empty(mode, x, (size,)), 0


def _unique(mode, func, size, x, *args, **kwargs):
    """The three results of the functions for unique elements or slices."""
    names = [a.name for a in func._schema.arguments[1:]]
    given = dict(zip(names, args)) | kwargs
    defaults = {a.name: a.default_value for a in func._schema.arguments[1:] if a.has_default_value()}
    asked = {**defaults, **given}
    dim = asked.get("dim")
    shape = [size] if dim is None else list(x.shape)
    if dim is not None:
        dim %= x.dim()
        shape[dim] = size
    places = x.shape if dim is None else (x.shape[dim],)
    inverse = places if asked["return_inverse"] else (0,)
    counts = (size,) if asked["return_counts"] else (0,)
    return (
        _empty(mode, x, shape),
        _empty(mode, x, inverse, torch.int64),
        _empty(mode, x, counts, torch.int64),
    ), dim or 0


def _repeat_interleave(mode, func, size, repeats, *, output_size=None):
    return _empty(mode, repeats, (size,), repeats.dtype), 0


def _bincount(mode, func, size, x, weights=None, minlength=0):
    dtype = torch.int64
    if weights is not None:
        dtype = weights.dtype if weights.dtype is torch.float32 else torch.float64
    return _empty(mode, x, (size,), dtype), 0


def _index(mode, func, size, x, indices):
    """A mask selects what as many numbers per dimension of it would."""
    spread: list = []
    for index in indices:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            spread += [_empty(mode, index, (size,), torch.int64) for _ in range(index.dim())]
        else:
            spread.append(index)
    given = [i for i, index in enumerate(spread) if index is not None]
    together = given[-1] - given[0] == len(given) - 1
    rank = max(spread[i].dim() for i in given)
    return mode._run(func, (x, spread), {}), (given[0] if together else 0) + rank - 1


_MAKERS: dict[str, Callable[..., Any]] = {
    "nonzero": _nonzero,
    "masked_select": _masked_select,
    "_unique2": _unique,
    "unique_dim": _unique,
    "unique_consecutive": _unique,
    "repeat_interleave": _repeat_interleave,
    "bincount": _bincount,
    "index": _index,
}
