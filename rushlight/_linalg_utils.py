"""Products of matrices that may be sparse or missing, as iterative solvers use them."""

import rushlight


def is_sparse(A):
    """Whether A is a sparse tensor in coordinate form."""
    if isinstance(A, rushlight.Tensor):
        return A.layout == rushlight.sparse_coo
    raise TypeError(f"expected Tensor but got {type(A)}")


def get_floating_dtype(A):
    """The dtype in which to compute with A: its own, or float32 for other than the common floating ones."""
    if A.dtype in (rushlight.float16, rushlight.float32, rushlight.float64):
        return A.dtype
    return rushlight.float32


def matmul(A, B):
    """A @ B, where None stands for the identity and A may be sparse."""
    if A is None:
        return B
    return rushlight.sparse.mm(A, B) if is_sparse(A) else rushlight.matmul(A, B)


def bform(X, A, Y):
    """The bilinear form X^T A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A, S):
    """The quadratic form S^T A S."""
    return bform(S, A, S)


def basis(A):
    """An orthonormal basis of the columns of A."""
    return rushlight.linalg.qr(A).Q


def symeig(A, largest=False):
    """Eigenvalues and eigenvectors of a symmetric matrix, ascending, or descending with largest=True."""
    E, Z = rushlight.linalg.eigh(A, UPLO="U")
    return (E.flip(-1), Z.flip(-1)) if largest else (E, Z)


def _removed(name, instead):
    def refuse(*args, **kwargs):
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed: torch.{name}; use {instead}"
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


matrix_rank = _removed("matrix_rank", "torch.linalg.matrix_rank")
solve = _removed("solve", "torch.linalg.solve(A, B), whose arguments come in the other order")
lstsq = _removed("lstsq", "torch.linalg.lstsq(A, B), whose arguments come in the other order")
_symeig = _removed("symeig", "torch.linalg.eigh or torch.linalg.eigvalsh")
eig = _removed("eig", "torch.linalg.eig or torch.linalg.eigvals")
