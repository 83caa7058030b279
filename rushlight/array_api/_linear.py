"""Products, which the main namespace and `linalg` share."""

import rushlight as torch
from rushlight.array_api._dtypes import promoted

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1, x2, /):
    """The matrix product, batched over leading dimensions."""
    return torch.matmul(*promoted(x1, x2))


def matrix_transpose(x, /):
    """x with its last two dimensions swapped."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: at least 2 dimensions are needed, but got {x.ndim}")
    return x.mT


def tensordot(x1, x2, /, *, axes=2):
    """Contracts axes of x1 with axes of x2."""
    x1, x2 = promoted(x1, x2)
    return torch.tensordot(x1, x2, dims=axes)


def vecdot(x1, x2, /, *, axis=-1):
    """sum(conj(x1) * x2) along an axis that is counted from the end."""
    x1, x2 = promoted(x1, x2)
    if axis >= 0 or -axis > min(x1.ndim, x2.ndim):
        if x1.ndim != x2.ndim or not -x1.ndim <= axis < x1.ndim:
            raise ValueError(f"vecdot: axis {axis} is out of bounds for shapes {x1.shape} and {x2.shape}")
        axis -= x1.ndim
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: shapes {x1.shape} and {x2.shape} differ along axis {axis}")
    return (x1.conj() * x2).sum(axis, dtype=x1.dtype)
