"""Results whose sizes depend on data: fake tensors at sizes that are samples."""

import contextlib
import math
import threading
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight.utils import _pytree as pytree

from .data_numbers import Infeasible
from .fake_tensor import DynamicOutputShapeException


def _take_example(numbers, name, given, real, dim):
    """What is known of a result's size and elements beside real tensors."""
    if real is None:
        return numbers.asked.unknown.add(name)
    numbers.take_size(name, real.shape[dim])
    given.real_tensor = real
    return None


def _counted(name, args):
    """The tensor whose elements that are not zero give a result its size, if there is one."""
    if name == "nonzero":
        return args[0]
    if name == "masked_select" and torch.broadcast_shapes(args[0].shape, args[1].shape) == args[1].shape:
        return args[1]
    masks = _masks(args[1]) if name == "index" else []
    return masks[0] if len(masks) == 1 else None


def _masks(indices):
    return [i for i in indices if i is not None and i.dtype in (torch.bool, torch.uint8)]


def _found_size(numbers, counted):
    """(name, sample) of a size: the same one as long as nobody writes to the tensor that it counts."""
    if counted is None:
        return numbers.new(is_size=True)
    known = counted.count_memo
    if known is None or known[0] != counted._version or known[1] is not numbers:
        counted.count_memo = known = counted._version, numbers, numbers.new(is_size=True)[0]
    return known[2], numbers.samples_of(known[2])


def result(mode, func, args, kwargs, real=None):
    """What an operator gives, with a sample for the size that it finds; the mode's numbers know of it."""
    make = _MAKERS.get(func._schema.name.removeprefix("aten::"))
    if make is None or "out" in kwargs:  # whose memory is that of the numbers that show in the program
        raise DynamicOutputShapeException(func)
    name, size = _found_size(mode.data_numbers, _counted(func._opname, args))
    given, place = make(mode, func, size, *args, **kwargs)
    first = given[0] if isinstance(given, tuple) else given
    mode.data_numbers.origins.setdefault(name, (first, place))
    if func._opname in _MOST:
        mode.data_numbers.most[name] = _MOST[func._opname](*args, **kwargs)
    found = pytree.tree_leaves(real) or [None]
    _take_example(mode.data_numbers, name, first, found[0], place)
    for tensor, known in zip(pytree.tree_leaves(given)[1:], found[1:], strict=False):
        tensor.real_tensor = known
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


def _nms(mode, func, size, dets, scores, iou_threshold):
    return _empty(mode, dets, (size,), torch.int64), 0


_MAKERS: dict[str, Callable[..., Any]] = {
    "nonzero": _nonzero,
    "masked_select": _masked_select,
    "_unique2": _unique,
    "unique_dim": _unique,
    "unique_consecutive": _unique,
    "repeat_interleave": _repeat_interleave,
    "bincount": _bincount,
    "index": _index,
    "torchvision::nms": _nms,
}


def _places_of_masks(x, indices):
    return min(int(mask.numel()) for mask in _masks(indices))


_MOST: dict[str, Callable[..., int]] = {  # how many elements may be found
    "nonzero": lambda x: int(x.numel()),
    "masked_select": lambda x, mask: math.prod(torch.broadcast_shapes(x.shape, mask.shape)),
    "_unique2": lambda x, *args, **kwargs: int(x.numel()),
    "index": _places_of_masks,
}


# --- operators of programs, whose fake functions ask for sizes (`torch.library.get_ctx`) ---

_asking = threading.local()


class _Asked:
    """The sizes that one fake function asks for. Where one shows, a run with another sample tells."""

    def __init__(self, numbers):
        self.numbers, self.names, self.count, self.moved = numbers, [], 0, None

    def size(self, low, high):
        self.count += 1
        if self.count > len(self.names):
            name, sample = self.numbers.new(is_size=True)
            self.names.append(name)
            self.numbers.bounds[name] = low, math.inf if high is None else high
            if sample < low or (high is not None and sample > high):
                raise Infeasible(f"{low} <= {name} <= {high}", name, max(low, min(sample, high or sample)))
        name = self.names[self.count - 1]
        return self.numbers.samples_of(name) + (self.count - 1 == self.moved)

    @contextlib.contextmanager
    def run(self, moved=None):
        before = getattr(_asking, "sizes", None)
        _asking.sizes, self.count, self.moved = self, 0, moved
        try:
            yield
        finally:
            _asking.sizes = before


def asked_size(low, high):
    """A sample of a size that the running fake function does not know."""
    sizes = getattr(_asking, "sizes", None)
    if sizes is None:
        raise DynamicOutputShapeException(
            "the operator has a data-dependent shape: sizes that depend on values have no symbols here"
        )
    return sizes.size(low, high)


def result_of_program(mode, func, args, kwargs, real=None):
    """What the fake function of a program's operator gives; the mode's numbers know of sizes it asks for."""
    sizes = _Asked(mode.data_numbers)
    with sizes.run():
        made = mode._run(func, args, kwargs)
    found = {}
    for i, name in enumerate(sizes.names):
        with sizes.run(moved=i):
            other = mode._run(func, args, kwargs)
        found[name] = list(_places(made, other, mode.data_numbers.samples_of(name)))
    for name, places in found.items():  # sizes are symbols from here on
        if not places:
            raise DynamicOutputShapeException(func)
        mode.data_numbers.origins[name] = first, dim = places[0]
        at = next(k for k, t in enumerate(pytree.tree_leaves(made)) if t is first)
        known = None if real is None else pytree.tree_leaves(real)[at]
        _take_example(mode.data_numbers, name, first, known, dim)
        for tensor, dim in places if mode.data_numbers.tracer is not None else ():
            tensor.data_sizes = {**(tensor.data_sizes or {}), dim: name}
    return made


def _places(made, other, sample):
    """The dimensions of results that are a size: those that grow by one as it does."""
    for tensor, grown in zip(pytree.tree_leaves(made), pytree.tree_leaves(other), strict=True):
        for dim in range(tensor.dim() if isinstance(tensor, torch.Tensor) else 0):
            if tensor.shape[dim] == sample and grown.shape[dim] == sample + 1:
                yield tensor, dim
