"""A few eigenpairs of large Hermitian matrices (Knyazev, "Toward the optimal preconditioned eigensolver")."""

import rushlight as torch
from rushlight._operators.overridable import overridable

__all__ = ["lobpcg"]


def _times(M, X):
    return X if M is None else M @ X


def _unit(X):
    """X with columns of length 1; columns of zeros stay."""
    length = torch.linalg.vector_norm(X, dim=-2, keepdim=True)
    return X / torch.where(length > 0, length, 1)


def _ritz(A, B, S, count, largest):
    """The best `count` pairs within the span of the columns of S, which need not be independent."""
    w, V = torch.linalg.eigh(S.mH @ _times(B, S))
    kept = w > w[..., -1:] * (torch.finfo(w.dtype).eps * S.shape[-1])
    Q = S @ (V * torch.where(kept, w, 1).rsqrt().where(kept, 0).unsqueeze(-2))
    H = Q.mH @ (A @ Q)
    # What was dropped must not look like an eigenvalue of 0: it goes to the end that nobody asked for.
    beyond = 1 + 2 * torch.linalg.matrix_norm(H).unsqueeze(-1).expand(w.shape)
    shift = torch.where(kept, 0, -beyond if largest else beyond)
    E, Z = torch.linalg.eigh((H + H.mH) / 2 + torch.diag_embed(shift).to(H.dtype))
    if largest:
        E, Z = E.flip(-1), Z.flip(-1)
    return E[..., :count], Q @ Z[..., :count]


def _iterate(A, B, X, iK, niter, tol, largest):
    n = X.shape[-1]
    scale = [torch.linalg.matrix_norm(_times(M, X)) / torch.linalg.matrix_norm(X) for M in (A, B)]
    E, X = _ritz(A, B, X, n, largest)
    P = X[..., :0]
    for _ in range(niter):
        BX = _times(B, X)
        R = A @ X - BX * E.unsqueeze(-2)
        size = torch.linalg.vector_norm(X, dim=-2) * (
            scale[0].unsqueeze(-1) + E.abs() * scale[1].unsqueeze(-1)
        )
        if bool((torch.linalg.vector_norm(R, dim=-2) <= tol * size).all()):
            break
        E, following = _ritz(A, B, torch.cat([X, _unit(_times(iK, R)), _unit(P)], -1), n, largest)
        P = following - X @ (BX.mH @ following)
        X = following
    return E, X


def _differentiable(A, B, E, X):
    """The same pairs as functions of A and B: Newton steps from the solution, |x| held.

    Each step with the same matrix makes derivatives of one order more exact; two are taken. The matrices are
    Hermitian, and so are their gradients.
    """
    A, B = (M if M is None else (M + M.mH) / 2 for M in (A, B))
    with torch.no_grad():
        BX = _times(B, X).mT.unsqueeze(-1)
        identity = torch.eye(A.shape[-1], dtype=A.dtype) if B is None else B
        top = A.unsqueeze(-3) - E.unsqueeze(-1).unsqueeze(-1) * identity.unsqueeze(-3)
        corner = torch.zeros_like(BX[..., :1, :])
        bordered = torch.cat([torch.cat([top, -BX], -1), torch.cat([BX.mH, corner], -1)], -2)
        factors, pivots = torch.linalg.lu_factor(bordered)
    for _ in range(2):
        residual = (A @ X - _times(B, X) * E.unsqueeze(-2)).mT.unsqueeze(-1)
        length = ((X.conj() * _times(B, X)).sum(-2) - 1).unsqueeze(-1).unsqueeze(-1) / 2
        step = torch.linalg.lu_solve(factors, pivots, torch.cat([residual, length.to(X.dtype)], -2))
        step = step.squeeze(-1)
        E = E - (step[..., -1].real if step.is_complex() else step[..., -1])
        X = X - step[..., :-1].mT
    return E, X


def _hermitian(t):
    return (t + t.mH) / 2 if t.layout == torch.strided else t


@overridable
def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None,
    tracker=None, ortho_iparams=None, ortho_fparams=None, ortho_bparams=None,
):  # fmt: skip
    """The `k` largest (or smallest) eigenvalues of ``A x = E B x``, in order, and their vectors.

    X holds first guesses, iK is a preconditioner. It has first and second derivatives. `method` and the
    ``ortho`` parameters are accepted for compatibility: one basis, always orthonormal, serves both methods.
    """
    if tracker is not None:
        raise NotImplementedError("lobpcg: tracker is not supported")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', but got {method!r}")
    m = A.shape[-1]
    if A.dim() < 2 or A.shape[-2] != m:
        raise ValueError(f"lobpcg: A must be batches of square matrices, but got shape {tuple(A.shape)}")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than "
            f"3 x the number of requested eigenpairs (={n})"
        )
    if not 0 < k <= n:
        raise ValueError(f"lobpcg: expected 0 < k <= n, but got k={k} and n={n}")
    recorded = torch.is_grad_enabled() and (A.requires_grad or (B is not None and B.requires_grad))
    if recorded:  # a step away from symmetric matrices, as finite differences take, is no eigenproblem
        A, B = _hermitian(A), None if B is None else _hermitian(B)
    with torch.no_grad():
        guess = torch.randn(*A.shape[:-1], n, dtype=A.dtype) if X is None else X
        limit = torch.finfo(A.dtype).eps ** 0.5 if tol is None else tol
        steps = 1000 if niter is None else niter
        E, X = _iterate(A, B, guess, iK, steps, limit, largest is None or largest)
        E, X = E[..., :k], X[..., :k]
    if recorded:
        return _differentiable(A, B, E, X)
    return E, X
