"""The standard's extension for linear algebra."""

from collections import namedtuple

import rushlight as torch
from rushlight.array_api._dtypes import promoted
from rushlight.array_api._linear import matmul, matrix_transpose, tensordot, vecdot
from rushlight.array_api._statistics import sum as _sum

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

eigh_result = namedtuple("eigh_result", "eigenvalues eigenvectors")
qr_result = namedtuple("qr_result", "Q R")
slogdet_result = namedtuple("slogdet_result", "sign logabsdet")
svd_result = namedtuple("svd_result", "U S Vh")


def cholesky(x, /, *, upper=False):
    """The triangular factor of a positive definite matrix."""
    return torch.linalg.cholesky(x, upper=upper)


def cross(x1, x2, /, *, axis=-1):
    """The vector product along an axis of size 3."""
    x1, x2 = torch.broadcast_tensors(*promoted(x1, x2))
    return torch.linalg.cross(x1, x2, dim=axis)


def det(x, /):
    """The determinant."""
    return torch.linalg.det(x)


def diagonal(x, /, *, offset=0):
    """The diagonal of the last two dimensions."""
    return torch.diagonal(x, offset, -2, -1)


def eigh(x, /):
    """Eigenvalues and eigenvectors of a Hermitian matrix."""
    return eigh_result(*torch.linalg.eigh(x))


def eigvalsh(x, /):
    """Eigenvalues of a Hermitian matrix."""
    return torch.linalg.eigvalsh(x)


def inv(x, /):
    """The inverse matrix."""
    return torch.linalg.inv(x)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norm of the last two dimensions."""
    return torch.linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x, n, /):
    """x multiplied with itself n times."""
    return torch.linalg.matrix_power(x, n)


def matrix_rank(x, /, *, rtol=None):
    """How many singular values are above rtol times the largest."""
    return torch.linalg.matrix_rank(x, rtol=rtol)


def outer(x1, x2, /):
    """All products of elements of two vectors."""
    return torch.outer(*promoted(x1, x2))


def pinv(x, /, *, rtol=None):
    """The pseudo-inverse."""
    return torch.linalg.pinv(x, rtol=rtol)


def qr(x, /, *, mode="reduced"):
    """x = Q R."""
    return qr_result(*torch.linalg.qr(x, mode))


def slogdet(x, /):
    """Sign and logarithm of the determinant."""
    return slogdet_result(*torch.linalg.slogdet(x))


def solve(x1, x2, /):
    """The solution of x1 @ x = x2; x2 is a vector only where it has one dimension."""
    x1, x2 = promoted(x1, x2)
    if x2.ndim == 1:
        return torch.linalg.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1, x2 = x1.expand(*batch, *x1.shape[-2:]), x2.expand(*batch, *x2.shape[-2:])
    return torch.linalg.solve(x1, x2)


def svd(x, /, *, full_matrices=True):
    """x = U diag(S) Vh."""
    return svd_result(*torch.linalg.svd(x, full_matrices))


def svdvals(x, /):
    """The singular values."""
    return torch.linalg.svdvals(x)


def trace(x, /, *, offset=0, dtype=None):
    """The sum of the diagonal of the last two dimensions."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norm over axes, all elements by default."""
    if axis == ():
        magnitude = x.abs()
        return (magnitude != 0).to(magnitude.dtype) if ord == 0 else magnitude
    return torch.linalg.vector_norm(x, ord, axis, keepdims)
