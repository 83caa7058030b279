"""Searching, sorting, sets and gathering."""

from collections import namedtuple

import rushlight as torch
from rushlight.array_api._dtypes import promoted

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]

unique_all_result = namedtuple("unique_all_result", "values indices inverse_indices counts")
unique_counts_result = namedtuple("unique_counts_result", "values counts")
unique_inverse_result = namedtuple("unique_inverse_result", "values inverse_indices")


def _extreme(operator, x, axis, keepdims):
    if axis is not None or not keepdims:
        return operator(x, axis, keepdims)
    return operator(x).reshape((1,) * x.ndim)


def argmax(x, /, *, axis=None, keepdims=False):
    """Where the first of the largest values is."""
    return _extreme(torch.argmax, x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Where the first of the smallest values is."""
    return _extreme(torch.argmin, x, axis, keepdims)


def nonzero(x, /):
    """Coordinates of the elements that are not zero, one array a dimension."""
    if x.ndim == 0:
        raise ValueError("nonzero: an array without dimensions has no coordinates")
    return torch.nonzero(x, as_tuple=True)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements are not zero."""
    mask = x != 0
    if axis == ():
        return mask.to(torch.int64)
    if axis is None:
        axis = tuple(range(x.ndim))
    return mask.sum(axis, keepdim=keepdims) if x.ndim else mask.to(torch.int64)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where elements of x2 belong in the sorted x1."""
    x1, x2 = promoted(x1, x2)
    if sorter is not None:
        x1, sorter = x1[sorter], None
    return torch.searchsorted(x1.contiguous(), x2, side=side)


def where(condition, x1, x2, /):
    """x1 where the condition holds, x2 elsewhere."""
    return torch.where(condition, *promoted(x1, x2))


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """x in order along axis."""
    if x.ndim == 0:
        return x.clone()
    return torch.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The order of x along axis."""
    return torch.sort(x, dim=axis, descending=descending, stable=stable).indices


def take(x, indices, /, *, axis=None):
    """Slices of x along axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: axis must be given for an array of {x.ndim} dimensions")
        axis = 0
    if indices.ndim > 1:
        found = torch.index_select(x, axis, indices.reshape(-1))
        return found.unflatten(axis, indices.shape)
    return torch.index_select(x, axis, _from_front(indices, x.shape[axis]))


def take_along_axis(x, indices, /, *, axis=-1):
    """The elements of x at indices along axis, which broadcast with the others."""
    return torch.take_along_dim(x, _from_front(indices, x.shape[axis]).to(torch.int64), axis)


def _from_front(indices, size):
    return torch.where(indices < 0, indices + size, indices)


def unique_all(x, /):
    """The distinct values in order, where each comes first, which each element is, and how many."""
    flat = x.reshape(-1)
    if x.is_complex():
        pairs, inverse, counts = torch.unique(
            torch.view_as_real(flat), return_inverse=True, return_counts=True, dim=0
        )
        values = torch.view_as_complex(pairs.contiguous())
    else:
        values, inverse, counts = torch.unique(flat, return_inverse=True, return_counts=True)
    positions = torch.arange(flat.numel(), device=x.device)
    first = torch.full(values.shape, flat.numel(), dtype=torch.int64, device=x.device)
    first = first.scatter_reduce(0, inverse, positions, "amin")
    return unique_all_result(values, first, inverse.reshape(x.shape), counts)


def unique_counts(x, /):
    """The distinct values and how many there are of each."""
    found = unique_all(x)
    return unique_counts_result(found.values, found.counts)


def unique_inverse(x, /):
    """The distinct values and which of them each element is."""
    found = unique_all(x)
    return unique_inverse_result(found.values, found.inverse_indices)


def unique_values(x, /):
    """The distinct values."""
    return unique_all(x).values
