"""torch.linalg by what defines each result, for every dtype, batched and not."""

import numpy as np
import pytest

import rushlight as torch

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
BATCHES = [(), (3,), (2, 1), (0,)]


def draw(*shape, dtype=torch.float64, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape)
    return torch.from_numpy(np.asarray(values)).to(dtype)


def square(*batch, n=4, dtype=torch.float64):
    return draw(*batch, n, n, dtype=dtype) + 3 * torch.eye(n, dtype=dtype)


def hermitian(*batch, n=4, dtype=torch.float64):
    a = draw(*batch, n, n, dtype=dtype)
    return a + a.mH


def positive(*batch, n=4, dtype=torch.float64):
    a = draw(*batch, n, n, dtype=dtype)
    return a @ a.mH + torch.eye(n, dtype=dtype)


def close(actual, expected):
    tolerance = 2e-4 if actual.dtype in (torch.float32, torch.complex64) else 1e-10
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request):
    return request.param


@pytest.fixture(params=BATCHES, ids=str)
def batch(request):
    return request.param


def test_lu(dtype, batch):
    for m, n in [(4, 4), (3, 5), (5, 3), (0, 2)]:
        a = draw(*batch, m, n, dtype=dtype)
        p, l, u = torch.linalg.lu(a)
        close(p @ l @ u, a)
        factors, pivots = torch.linalg.lu_factor(a) if m and n else torch.linalg.lu_factor_ex(a)[:2]
        for ours, theirs in zip(torch.lu_unpack(factors, pivots), (p, l, u), strict=True):
            close(ours, theirs)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(dtype, batch, left, adjoint):
    a = square(*batch, dtype=dtype)
    b = draw(*batch, *((4, 2) if left else (2, 4)), dtype=dtype)
    x = torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, left=left, adjoint=adjoint)
    op = a.mH if adjoint else a
    close(op @ x if left else x @ op, b)


def test_solve(dtype, batch):
    a, b = square(*batch, dtype=dtype), draw(*batch, 4, 2, dtype=dtype)
    close(a @ torch.linalg.solve(a, b), b)
    close(torch.linalg.solve(a, b.mT, left=False) @ a, b.mT)
    x, info = torch.linalg.solve_ex(a, b)
    assert info.dtype == torch.int32 and info.shape == a.shape[:-2] and not info.any()
    close(torch.linalg.inv(a) @ a, torch.eye(4, dtype=dtype).expand(a.shape))


def test_solve_takes_vectors_and_broadcasts():
    a, b = square(3), draw(4)
    close((a @ torch.linalg.solve(a, b).unsqueeze(-1)).squeeze(-1), b.expand(3, 4))
    close(square() @ torch.linalg.solve(square(), draw(5, 4, 2)), draw(5, 4, 2))


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solve_triangular(dtype, batch, upper, unit):
    full = square(*batch, dtype=dtype)
    t = full.triu() if upper else full.tril()
    if unit:
        t = t - torch.diag_embed(t.diagonal(0, -2, -1)) + torch.eye(4, dtype=dtype)
    b = draw(*batch, 4, 2, dtype=dtype)
    options = {"upper": upper, "unitriangular": unit}
    close(t @ torch.linalg.solve_triangular(full, b, **options), b)
    close(torch.linalg.solve_triangular(full, b.mT, left=False, **options) @ t, b.mT)
    for transpose in (False, True):
        x, _ = torch.triangular_solve(b, full, upper=upper, transpose=transpose, unitriangular=unit)
        close((t.mT if transpose else t) @ x, b)


@pytest.mark.parametrize("upper", [True, False])
def test_cholesky(dtype, batch, upper):
    a, b = positive(*batch, dtype=dtype), draw(*batch, 4, 2, dtype=dtype)
    l = torch.linalg.cholesky(a, upper=upper)
    close(l.mH @ l if upper else l @ l.mH, a)
    assert not (l.tril(-1) if upper else l.triu(1)).any()
    close(a @ torch.cholesky_solve(b, l, upper=upper), b)
    close(a @ torch.cholesky_inverse(l, upper=upper), torch.eye(4, dtype=dtype).expand(a.shape))


@pytest.mark.parametrize("conjugate", [True, False])
def test_ldl(dtype, batch, conjugate):
    full = draw(*batch, 6, 6, dtype=dtype)  # indefinite, so that 2x2 blocks occur
    a, b = full + (full.mH if conjugate else full.mT), draw(*batch, 6, 2, dtype=dtype)
    ld, pivots = torch.linalg.ldl_factor(a, hermitian=conjugate)
    assert pivots.dtype == torch.int32
    close(a @ torch.linalg.ldl_solve(ld, pivots, b, hermitian=conjugate), b)


def test_qr(dtype, batch):
    for m, n in [(4, 4), (3, 5), (5, 3), (3, 0)]:
        a = draw(*batch, m, n, dtype=dtype)
        for mode, k in [("reduced", min(m, n)), ("complete", m)]:
            q, r = torch.linalg.qr(a, mode)
            assert q.shape == (*batch, m, k) and r.shape == (*batch, k, n)
            close(q @ r, a)
            close(q.mH @ q, torch.eye(k, dtype=dtype).expand(*batch, k, k))
            assert not r.tril(-1).any()
        close(torch.linalg.qr(a, "r").R, torch.linalg.qr(a).R)


def test_reflectors(dtype, batch):
    a = draw(*batch, 5, 3, dtype=dtype)
    factors, tau = torch.geqrf(a)
    q, r = torch.linalg.qr(a)
    close(torch.linalg.householder_product(factors, tau), q)
    full = torch.ormqr(factors, tau, torch.eye(5, dtype=dtype).expand(*batch, 5, 5))
    close(full[..., :3], q)
    for left in (True, False):
        for transpose in (True, False):
            c = draw(*batch, *((5, 2) if left else (2, 5)), dtype=dtype)
            op = full.mH if transpose else full
            close(torch.ormqr(factors, tau, c, left, transpose), op @ c if left else c @ op)


def test_eigh(dtype, batch):
    a = hermitian(*batch, dtype=dtype)
    for uplo, triangle in [("L", a.tril()), ("U", a.triu())]:
        w, v = torch.linalg.eigh(triangle, uplo)
        assert w.dtype == dtype.to_real() and (w.diff() >= 0).all()
        close(v @ (w.unsqueeze(-1) * v.mH), a)
        close(torch.linalg.eigvalsh(triangle, uplo), w)


def test_eig(dtype, batch):
    a = draw(*batch, 5, 5, dtype=dtype)
    w, v = torch.linalg.eig(a)
    close(a.to(v.dtype) @ v, v * w.unsqueeze(-2))
    close(torch.linalg.vector_norm(v, dim=-2), torch.ones(*batch, 5, dtype=dtype.to_real()))
    values = torch.linalg.eigvals(a)
    close(values.sum(-1), a.diagonal(0, -2, -1).sum(-1).to(v.dtype))


def test_eig_of_defective_and_special_matrices():
    jordan = torch.tensor([[2.0, 1, 0], [0, 2, 1], [0, 0, 2]], dtype=torch.float64)
    np.testing.assert_allclose(torch.linalg.eigvals(jordan).numpy(), 2, atol=1e-4)
    rotation = torch.tensor([[0.0, -1], [1, 0]], dtype=torch.float64)
    assert sorted(torch.linalg.eigvals(rotation).imag.tolist()) == pytest.approx([-1, 1])
    cycle = torch.eye(6, dtype=torch.float64).roll(1, 0)  # all eigenvalues have the same size
    np.testing.assert_allclose(torch.linalg.eigvals(cycle).abs().numpy(), 1)
    assert not torch.linalg.eigvals(torch.zeros(3, 3)).any()


def test_svd(dtype, batch):
    for m, n in [(4, 4), (3, 5), (5, 3), (3, 0)]:
        a = draw(*batch, m, n, dtype=dtype)
        k = min(m, n)
        for full in (True, False):
            u, s, vh = torch.linalg.svd(a, full_matrices=full)
            assert u.shape[-1] == (m if full else k) and vh.shape[-2] == (n if full else k)
            close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a)
            close(u.mH @ u, torch.eye(u.shape[-1], dtype=dtype).expand(*batch, u.shape[-1], u.shape[-1]))
            close(vh @ vh.mH, torch.eye(vh.shape[-2], dtype=dtype).expand(*batch, vh.shape[-2], vh.shape[-2]))
        close(torch.linalg.svdvals(a), s)
        u, s, v = torch.svd(a)
        close((u * s.unsqueeze(-2)) @ v.mH, a)


def test_svd_of_low_rank_completes_the_basis():
    a = draw(5, 2) @ draw(2, 4, seed=1)
    u, s, vh = torch.linalg.svd(a)
    close(u.mH @ u, torch.eye(5, dtype=a.dtype))
    assert (s > 1e-10).sum() == 2


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_lstsq(dtype, driver):
    for m, n in [(5, 3), (3, 5), (4, 4)]:
        a, b = draw(2, m, n, dtype=dtype), draw(2, m, 2, dtype=dtype)
        x, residuals, rank, values = torch.linalg.lstsq(a, b, driver=driver)
        close(x, torch.linalg.pinv(a) @ b)
        if m > n and driver != "gelsy":
            close(residuals, (a @ x - b).abs().square().sum(-2))
        if driver == "gels":
            assert rank.numel() == 0
        else:
            assert rank.tolist() == [min(m, n)] * 2
        if driver in ("gelsd", "gelss"):
            close(values, torch.linalg.svdvals(a))


def test_lstsq_of_low_rank_is_the_shortest():
    a, b = draw(6, 2) @ draw(2, 4, seed=1), draw(6, 1)
    for driver in ("gelsy", "gelsd", "gelss"):
        x, _, rank, _ = torch.linalg.lstsq(a, b, driver=driver)
        assert rank == 2
        close(x, torch.linalg.pinv(a, rtol=1e-10) @ b)


def test_pinv_and_rank(dtype, batch):
    a = draw(*batch, 5, 2, dtype=dtype) @ draw(*batch, 2, 4, dtype=dtype, seed=1)
    p = torch.linalg.pinv(a, rtol=1e-4)
    close(a @ p @ a, a)
    assert (torch.linalg.matrix_rank(a, rtol=1e-4) == 2).all()
    h = hermitian(*batch, dtype=dtype)
    close(torch.linalg.pinv(h, hermitian=True) @ h, torch.eye(4, dtype=dtype).expand(h.shape))
    tolerances = torch.full(batch, 1e9)
    assert not torch.linalg.matrix_rank(a, atol=tolerances).any()


def test_determinants(dtype, batch):
    a = square(*batch, dtype=dtype)
    expected = torch.from_numpy(np.asarray(np.linalg.det(a.numpy())).astype(a.numpy().dtype))
    close(torch.linalg.det(a), expected)
    sign, value = torch.linalg.slogdet(a)
    close(sign * value.exp(), expected)
    assert torch.det(torch.zeros(2, 0, 0)).tolist() == [1, 1]


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 0.5, 3.0, 40.0])
def test_matrix_exp(dtype, scale):
    a = hermitian(3, dtype=torch.complex128 if dtype.is_complex else torch.float64) * scale / 6
    w, v = torch.linalg.eigh(a)
    expected = (v * w.exp().unsqueeze(-2)) @ v.mH
    actual = torch.matrix_exp(a.to(dtype))
    relative = torch.linalg.matrix_norm(actual.to(expected.dtype) - expected) / torch.linalg.matrix_norm(
        expected
    )
    assert relative.max() < (1e-4 if dtype.to_real() == torch.float32 else 1e-11)


def test_matrix_exp_scales_each_matrix_by_itself():
    a = torch.stack([draw(3, 3), 30 * draw(3, 3), torch.zeros(3, 3, dtype=torch.float64)])
    together = torch.matrix_exp(a)
    for one, whole in zip(a, together, strict=True):
        alone = torch.matrix_exp(one)
        np.testing.assert_allclose(whole.numpy(), alone.numpy(), rtol=1e-9)


@pytest.mark.parametrize("ord", ["fro", "nuc", float("inf"), float("-inf"), 1, -1, 2, -2])
def test_norms(dtype, ord):
    a = draw(3, 4, dtype=dtype)
    expected = torch.from_numpy(np.asarray(np.linalg.norm(a.numpy(), ord)))
    close(torch.linalg.matrix_norm(a, ord), expected)
    close(torch.linalg.norm(a, ord), expected)
    s = square(dtype=dtype)
    expected = np.linalg.norm(s.numpy(), ord) * np.linalg.norm(np.linalg.inv(s.numpy()), ord)
    close(torch.linalg.cond(s, ord), torch.from_numpy(np.asarray(expected)))
    assert torch.linalg.matrix_norm(draw(3, 2, 4, dtype=dtype), ord, dim=(0, 2), keepdim=True).shape == (
        1,
        2,
        1,
    )


def test_cond_of_singular_matrices_is_infinite():
    assert torch.linalg.cond(torch.zeros(2, 2), 1) == float("inf")
    assert torch.linalg.cond(torch.ones(2, 3, 3), "fro").isinf().all()


def test_low_rank(dtype):
    a = draw(3, 9, 2, dtype=dtype) @ draw(3, 2, 6, dtype=dtype, seed=1)
    for m in (a, a.mT):
        u, s, v = torch.svd_lowrank(m, q=4)
        close((u * s.unsqueeze(-2)) @ v.mH, m)
        u, s, v = torch.pca_lowrank(m, q=3)
        close((u * s.unsqueeze(-2)) @ v.mH, m - m.mean(-2, keepdim=True))


def test_cov_and_corrcoef():
    x = draw(3, 8)
    np.testing.assert_allclose(torch.cov(x).numpy(), np.cov(x.numpy()))
    np.testing.assert_allclose(torch.corrcoef(x).numpy(), np.corrcoef(x.numpy()))
    counts, weights = torch.arange(1, 9), draw(8).abs()
    ours = torch.cov(x, correction=0, fweights=counts, aweights=weights)
    theirs = np.cov(x.numpy(), ddof=0, fweights=counts.numpy(), aweights=weights.numpy())
    np.testing.assert_allclose(ours.numpy(), theirs)


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg(dtype, largest):
    a, b = hermitian(2, n=20, dtype=dtype), positive(2, n=20, dtype=dtype) / 20
    for mass in (None, b):
        e, x = torch.lobpcg(a, 3, B=mass, largest=largest, niter=2000)
        bx = x if mass is None else mass @ x
        residual = torch.linalg.matrix_norm(a @ x - bx * e.unsqueeze(-2))
        assert (residual < 0.05 * torch.linalg.matrix_norm(a)).all()
        half = a if mass is None else torch.linalg.solve(mass, a)
        exact = torch.linalg.eigvals(half).real.sort(descending=largest)[0][..., :3]
        np.testing.assert_allclose(e.numpy(), exact.numpy(), rtol=1e-2)


def test_lobpcg_refuses_small_matrices():
    with pytest.raises(ValueError, match="3 x the number of requested eigenpairs"):
        torch.lobpcg(torch.eye(5), 2)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3)])
@pytest.mark.parametrize("order", [1, 2, float("inf"), "fro", "nuc"])
def test_norms_of_matrices_without_elements(shape, order):
    norm = torch.linalg.matrix_norm(torch.zeros(shape), order)
    assert norm.shape == shape[:-2] and not norm.any()


def test_addr_refuses_factors_that_the_result_cannot_hold():
    m, v = torch.ones(2, 2), torch.ones(2)
    assert torch.addr(m, v, v, beta=2, alpha=0.5)[0, 0] == 2.5
    with pytest.raises(RuntimeError, match="argument beta must not be a complex number"):
        torch.addr(m, v, v, beta=1j)
    with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
        torch.addr(m.long(), v.long(), v.long(), alpha=0.5)
    with pytest.raises(RuntimeError, match="Boolean beta only supported for Boolean results"):
        torch.addr(m, v, v, beta=True)


def test_pivots_of_one_factorisation_serve_a_batch():
    a = torch.rand(4, 4)
    lu, pivots = torch.linalg.lu_factor(a)
    p, lower, upper = torch.lu_unpack(lu.expand(2, 4, 4), pivots)
    # PyTorch leaves the second permutation as it found it in memory.
    assert torch.allclose(p @ lower @ upper, a.expand(2, 4, 4), atol=1e-6)
    with pytest.raises(RuntimeError, match="4 elements in its last dimension"):
        torch.lu_unpack(torch.rand(4, 4), torch.ones(3, dtype=torch.int32))


def test_nan_reaches_distances_of_order_zero():
    x = torch.tensor([[float("nan"), 1.0], [2.0, 3.0]])
    assert str(torch.cdist(x, x[1:], 0.0).tolist()) == "[[nan], [0.0]]"
