"""Linear algebra: the core's factorisations and solvers, and what is composed of them."""

import rushlight as torch
from rushlight import _C

LinAlgError = _C._LinAlgError
globals().update({name: f for name, f in vars(_C._linalg).items() if not name.startswith("__")})
TYPE_CHECKING = False
if TYPE_CHECKING:  # the same names, for type checkers
    from rushlight._C._linalg import *  # noqa: F403

_COMPOSED = [
    "cond", "cross", "diagonal", "inv_ex", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "tensorinv", "tensorsolve", "vander", "vecdot",
]  # fmt: skip
__all__ = sorted(
    {name for name in vars(_C._linalg) if not name.startswith("_")} | {"LinAlgError", *_COMPOSED}
)

_linalg = _C._linalg


def _into(out, result):
    """result, or out filled with it."""
    if out is None:
        return result
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


def matmul(input, other, *, out=None):
    """The same as `rushlight.matmul`."""
    return torch.matmul(input, other, out=out)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonal of the last two dimensions."""
    return torch.diagonal(A, offset, dim1, dim2)


def vecdot(x, y, *, dim=-1, out=None):
    """sum(conj(x) * y) along dim."""
    x = x.conj() if x.is_complex() else x
    return _into(out, (x * y).sum(dim))


def cross(input, other, *, dim=-1, out=None):
    """The vector product along dim, of size 3."""
    if input.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.size(dim) != 3 or other.size(dim) != 3:
        sizes = f"{input.size(dim)} and {other.size(dim)}"
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes}")
    a, b = torch.broadcast_tensors(input, other)
    return _into(out, a.roll(-1, dim) * b.roll(-2, dim) - a.roll(-2, dim) * b.roll(-1, dim))


def matrix_power(A, n, *, out=None):
    """A multiplied with itself n times; its inverse for negative n."""
    if A.dim() < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if A.size(-1) != A.size(-2):
        sizes = f"{A.size(-2)} by {A.size(-1)}"
        raise RuntimeError(
            f"linalg.matrix_power: A must be batches of square matrices, but they are {sizes} matrices"
        )
    if n == 0:
        eye = torch.eye(A.size(-1), dtype=A.dtype, device=A.device)
        return _into(out, eye.expand(A.shape).clone())
    base = _linalg.inv(A) if n < 0 else A
    result, n = None, abs(n)
    while n:
        if n & 1:
            result = base if result is None else result @ base
        n >>= 1
        if n:
            base = base @ base
    return _into(out, result.clone() if result is A else result)


def multi_dot(tensors, *, out=None):
    """The product of a chain of matrices, in the cheapest order."""
    matrices = list(tensors)
    if len(matrices) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(matrices)}")
    first, last = matrices[0].dim() == 1, matrices[-1].dim() == 1
    if first:
        matrices[0] = matrices[0].unsqueeze(0)
    if last:
        matrices[-1] = matrices[-1].unsqueeze(1)
    for m in matrices:
        if m.dim() != 2:
            raise RuntimeError("multi_dot(): tensors must be matrices, the first and the last may be vectors")
    sizes = [m.size(0) for m in matrices] + [matrices[-1].size(1)]
    n = len(matrices)
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], cut[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i, j):
        return matrices[i] if i == j else product(i, cut[i][j]) @ product(cut[i][j] + 1, j)

    result = product(0, n - 1)
    if first:
        result = result.squeeze(0)
    if last:
        result = result.squeeze(-1)
    return _into(out, result)


def inv_ex(A, *, check_errors=False, out=None):
    """The inverse, and zeros as the status of each matrix."""
    inverse = _linalg.inv(A)
    info = torch.zeros(A.shape[:-2], dtype=torch.int32, device=A.device)
    return (
        torch.return_types.linalg_inv_ex((inverse, info))
        if hasattr(torch.return_types, "linalg_inv_ex")
        else (inverse, info)
    )


def _two_dims(A, dim):
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
    first, second = (d + A.dim() if d < 0 else d for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got {dim}")
    return first, second


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """The matrix norm of order 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2."""
    if A.dim() < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if not (A.is_floating_point() or A.is_complex()):
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {A.dtype}"
        )
    first, second = _two_dims(A, dim)
    if dtype is not None:
        A = A.to(dtype)
    if ord == "fro":
        return _into(out, _linalg.vector_norm(A, 2, (first, second), keepdim))
    if ord == "nuc" or abs(ord) == 2:
        s = _linalg.svdvals(A.movedim((first, second), (-2, -1)))
        result = s.sum(-1) if ord == "nuc" else s.amax(-1) if ord == 2 else s.amin(-1)
    elif ord in (1, -1, float("inf"), float("-inf")):
        along, over = (first, second) if abs(ord) == 1 else (second, first)
        sums = A.abs().sum(along, keepdim=True)
        result = (sums.amax if ord > 0 else sums.amin)(over, keepdim=True).squeeze((first, second))
    else:
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if keepdim:
        for d in sorted((first, second)):
            result = result.unsqueeze(d)
    return _into(out, result)


def norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
    """A vector norm, or a matrix norm when dim names two dimensions or ord is a name."""
    dims = (dim,) if isinstance(dim, int) else dim
    if ord is not None and (
        (dims is not None and len(dims) == 2) or (dims is None and A.dim() == 2) or isinstance(ord, str)
    ):
        if dims is None and A.dim() != 2:
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. "
                f"Got {A.dim()}D."
            )
        return matrix_norm(A, ord, dims or (-2, -1), keepdim, dtype=dtype, out=out)
    if ord is not None and dims is None and A.dim() > 2:
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D."
        )
    return _into(out, _linalg.vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype))


def _tolerance(s, atol, rtol, shape):
    """Below what a singular value counts as zero: PyTorch's default is max(shape) * eps of the largest."""
    if rtol is None:
        given = atol is not None and bool((torch.as_tensor(atol) > 0).any())
        rtol = 0.0 if given else torch.finfo(s.dtype).eps * max(shape[-2:])
    largest = s.amax(-1, keepdim=True)
    atol = 0.0 if atol is None else atol
    atol = atol.unsqueeze(-1) if isinstance(atol, torch.Tensor) else torch.as_tensor(atol, dtype=s.dtype)
    rtol = rtol.unsqueeze(-1) if isinstance(rtol, torch.Tensor) else rtol
    return torch.maximum(atol.to(s.dtype), largest * rtol)


def matrix_rank(A, tol=None, *, atol=None, rtol=None, hermitian=False, out=None):
    """How many singular values are larger than the tolerance."""
    if tol is not None:
        atol, rtol = tol, 0.0
    s = _linalg.eigvalsh(A).abs() if hermitian else _linalg.svdvals(A)
    if s.size(-1) == 0:
        return _into(out, torch.zeros(A.shape[:-2], dtype=torch.int64))
    return _into(out, (s > _tolerance(s, atol, rtol, A.shape)).sum(-1))


def pinv(A, rcond=None, *, atol=None, rtol=None, hermitian=False, out=None):
    """The pseudo-inverse."""
    rtol = rcond if rcond is not None else rtol
    if A.numel() == 0:
        return _into(out, A.new_empty((*A.shape[:-2], A.size(-1), A.size(-2))))
    if hermitian:
        values, u = _linalg.eigh(A)
        magnitude, vh = values.abs(), u.mH
    else:
        u, values, vh = _linalg.svd(A, full_matrices=False)
        magnitude = values
    keep = magnitude > _tolerance(magnitude, atol, rtol, A.shape)
    inverse = torch.where(keep, torch.where(keep, values, 1).reciprocal(), 0)
    return _into(out, (vh.mH * inverse.unsqueeze(-2)) @ u.mH)


def cond(A, p=None, *, out=None):
    """The condition number in the norm of order p."""
    if p is None or p in (2, -2):
        s = _linalg.svdvals(A)
        result = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        result = matrix_norm(A, p) * matrix_norm(_linalg.inv(A), p)
    return _into(out, result)


def tensorinv(A, ind=2, *, out=None):
    """The inverse of A as a map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    before, after = A.shape[:ind], A.shape[ind:]
    rows, columns = before.numel(), after.numel()
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
            f"but got {columns} != {rows}"
        )
    return _into(out, _linalg.inv(A.reshape(rows, columns)).reshape(*after, *before))


def tensorsolve(A, B, dims=None, *, out=None):
    """X with tensordot(A, X, X.dim()) == B."""
    if dims is not None:
        dims = [d % A.dim() for d in dims]
        A = A.permute([d for d in range(A.dim()) if d not in dims] + dims)
    shape = A.shape[B.dim() :]
    if shape.numel() != B.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement "
            "prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {shape.numel()} != {B.numel()}"
        )
    solution = _linalg.solve(A.reshape(B.numel(), B.numel()), B.reshape(-1))
    return _into(out, solution.reshape(shape))


def vander(x, *, N=None):
    """Columns of powers of x, from 0 up to N - 1."""
    n = x.size(-1) if N is None else N
    if n <= 1 and N is not None:
        raise RuntimeError("N must be greater than 1.")
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(torch.int64)
    powers = [torch.ones_like(x)]
    for _ in range(n - 1):
        powers.append(powers[-1] * x)
    return torch.stack(powers, -1)
