"""Shapes and order."""

import builtins

import rushlight as torch
from rushlight.array_api._dtypes import promoted

__all__ = [
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def broadcast_arrays(*arrays):
    """The arrays, stretched to their common shape."""
    return list(torch.broadcast_tensors(*arrays))


def broadcast_to(x, /, shape):
    """x stretched to a shape."""
    return torch.broadcast_to(x, tuple(shape))


def concat(arrays, /, *, axis=0):
    """The arrays one after the other along axis; flattened before where it is None."""
    arrays = promoted(*arrays)
    if axis is None:
        return torch.cat([a.reshape(-1) for a in arrays])
    return torch.cat(arrays, axis)


def stack(arrays, /, *, axis=0):
    """The arrays along a new axis."""
    return torch.stack(promoted(*arrays), axis)


def unstack(x, /, *, axis=0):
    """The slices along axis."""
    return torch.unbind(x, axis)


def expand_dims(x, /, axis=0):
    """x with a new axis of size 1."""
    return torch.unsqueeze(x, axis)


def squeeze(x, /, axis):
    """x without these axes, which must be of size 1."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if not -x.ndim <= a < x.ndim:
            raise IndexError(f"squeeze: axis {a} is out of bounds for an array of {x.ndim} dimensions")
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has size {x.shape[a]}, not 1")
    return torch.squeeze(x, axes) if axes else x


def flip(x, /, *, axis=None):
    """x in reverse along axes, by default all."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return torch.flip(x, tuple(axes))


def moveaxis(x, source, destination, /):
    """Moves axes, keeping the order of the others."""
    return torch.moveaxis(x, source, destination)


def permute_dims(x, /, axes):
    """x with its axes in another order."""
    return torch.permute(x, tuple(axes))


def repeat(x, repeats, /, *, axis=None):
    """Each element several times along axis; of the flattened array where it is None."""
    if isinstance(repeats, (list, tuple)):
        repeats = torch.tensor(repeats, dtype=torch.int64, device=x.device)
    if isinstance(repeats, torch.Tensor):
        repeats = repeats.to(torch.int64)
    return torch.repeat_interleave(x, repeats, axis)


def reshape(x, /, shape, *, copy=None):
    """x in another shape; a copy if asked for or if there is no other way and copy is None."""
    if copy:
        return x.clone().reshape(tuple(shape))
    result = x.reshape(tuple(shape))
    if copy is False and x.numel() and result.data_ptr() != x.data_ptr():
        raise ValueError(f"reshape: shape {tuple(x.shape)} cannot become {tuple(shape)} without a copy")
    return result


def roll(x, /, shift, *, axis=None):
    """Elements moved along axes, coming in again at the other end."""
    if axis is None:
        return torch.roll(x, shift)
    if isinstance(axis, int):
        return torch.roll(x, shift, axis)
    shifts = (shift,) * len(axis) if isinstance(shift, int) else shift
    return torch.roll(x, tuple(shifts), tuple(axis))


def tile(x, repetitions, /):
    """Copies of x beside one another."""
    return torch.tile(x, tuple(builtins.int(r) for r in repetitions))
