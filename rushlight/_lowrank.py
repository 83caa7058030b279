"""Decompositions of low rank by random projections (Halko, Martinsson and Tropp, "Finding structure with
randomness", 2009, algorithms 4.4 and 5.1)."""

import rushlight as torch
from rushlight._operators.overridable import overridable

__all__ = ["pca_lowrank", "svd_lowrank"]

__capture__ = "through"  # Note [Capture marks]


def _basis(A, q, niter, M):
    """Orthonormal columns that span, nearly, what A - M maps to."""

    def multiply(A, M, X):
        return A @ X if M is None else A @ X - M @ X

    AH, MH = A.mH, None if M is None else M.mH
    R = torch.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    Q = torch.linalg.qr(multiply(A, M, R)).Q
    for _ in range(niter):
        Q = torch.linalg.qr(multiply(AH, MH, Q)).Q
        Q = torch.linalg.qr(multiply(A, M, Q)).Q
    return Q


@overridable
def svd_lowrank(A, q=6, niter=2, M=None):
    """``(U, S, V)`` with A - M nearly equal to ``U diag(S) V.mH``, of rank `q`."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    M = None if M is None else M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = A.mH, None if M is None else M.mH
    Q = _basis(A, q, niter, M)
    B = Q.mH @ A if M is None else Q.mH @ A - Q.mH @ M
    U, S, Vh = torch.linalg.svd(B, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


@overridable
def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components of the rows of A as `svd_lowrank` gives them, centred unless told otherwise."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
