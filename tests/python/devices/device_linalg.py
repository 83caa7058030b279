"""Linear algebra on a device; test_cuda.py runs it on the emulated one, whose functions of cuSOLVER's names
compute with the CPU's loops."""

import os
import subprocess
import sys

import pytest
from device_helpers import emulated, needs_two, only_emulated
from device_layers import computed_there

import rushlight as torch

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
BATCHES = [(), (3,), (2, 0), (2, 2)]
LAYOUTS = [lambda t: t, lambda t: t.mT, lambda t: t.mT.contiguous().mT]


def close(there, here, **tolerance):
    assert there.is_cuda and there.dtype == here.dtype and there.shape == here.shape
    single = here.dtype in (torch.float32, torch.complex64)
    limit = {"atol": 2e-3, "rtol": 2e-3} if single else {"atol": 1e-9, "rtol": 1e-9}
    torch.testing.assert_close(there.cpu(), here, **(tolerance or limit))


def matrices(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


# Batches of complex matrices: by the modulus; LAPACK takes |re| + |im|, as the emulated device does.
ITS_OWN_PIVOTS = emulated is None


def multiplied(factors):
    p, lower, upper = factors
    return p @ lower @ upper


def positive(batch, n, dtype):
    a = matrices(*batch, n, n, dtype=dtype)
    return a @ a.mH + 2 * torch.eye(n, dtype=dtype)


def test_where_it_is_computed():
    names = "lu_factor_ex lu_solve _linalg_solve_ex inv_ex _linalg_det _linalg_slogdet solve_triangular"
    names += " cholesky_ex cholesky_solve cholesky_inverse geqrf qr householder_product ormqr"
    names += " _linalg_eigh _linalg_svd lstsq pinv _permutation_of_pivots"
    names += " eig _linalg_eigvals ldl_factor_ex ldl_solve matrix_exp"
    computed_there(*names.split())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_factors(dtype, batch):
    for layout in LAYOUTS:
        a = layout(matrices(*batch, 5, 5, dtype=dtype))
        there, here = torch.linalg.lu_factor_ex(a.cuda()), torch.linalg.lu_factor_ex(a)
        close(there.info, here.info)
        if ITS_OWN_PIVOTS and dtype.is_complex:
            close(multiplied(torch.lu_unpack(*there[:2])), a)
        else:
            close(there[0], here[0])
            close(there[1], here[1])
        p = layout(positive(batch, 4, dtype))
        for upper in (False, True):
            there = torch.linalg.cholesky_ex(p.cuda(), upper=upper)
            here = torch.linalg.cholesky_ex(p, upper=upper)
            close(there[0], here[0])
            close(there[1], here[1])
    for m, n in ((6, 3), (3, 6)):
        a = matrices(*batch, m, n, dtype=dtype)
        if ITS_OWN_PIVOTS and dtype.is_complex:
            close(multiplied(torch.linalg.lu(a.cuda())), a)
        else:
            for got, wanted in zip(torch.linalg.lu(a.cuda()), torch.linalg.lu(a), strict=True):
                close(got, wanted)
        for got, wanted in zip(torch.geqrf(a.cuda()), torch.geqrf(a), strict=True):
            close(got, wanted)
        for mode in ("reduced", "complete", "r"):
            for got, wanted in zip(torch.linalg.qr(a.cuda(), mode), torch.linalg.qr(a, mode), strict=True):
                close(got, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_reflectors(dtype, batch):
    a = matrices(*batch, 5, 3, dtype=dtype)
    reflectors, tau = torch.geqrf(a)
    close(
        torch.linalg.householder_product(reflectors.cuda(), tau.cuda()),
        torch.linalg.householder_product(reflectors, tau),
    )
    for left in (True, False):
        c = matrices(*batch, *((5, 4) if left else (4, 5)), dtype=dtype)
        for adjoint in (True, False):
            wanted = torch.ormqr(reflectors, tau, c, left, adjoint)
            close(torch.ormqr(reflectors.cuda(), tau.cuda(), c.cuda(), left, adjoint), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_solvers(dtype, batch):
    a, b = positive(batch, 5, dtype), matrices(*batch, 5, 2, dtype=dtype, seed=1)
    for layout in LAYOUTS:
        x = layout(a)
        close(torch.linalg.solve(x.cuda(), b.cuda()), torch.linalg.solve(x, b))
        close(torch.linalg.solve(x.cuda(), b.mT.cuda(), left=False), torch.linalg.solve(x, b.mT, left=False))
        close(torch.linalg.inv(x.cuda()), torch.linalg.inv(x))
        for f in (torch.linalg.det, torch.linalg.slogdet, torch.logdet):
            there, here = f(x.cuda()), f(x)
            for got, wanted in zip(
                *((r,) if isinstance(r, torch.Tensor) else r for r in (there, here)), strict=True
            ):
                close(got, wanted, atol=1e-2, rtol=1e-2)
        for upper in (True, False):
            for unit in (True, False):
                close(
                    torch.linalg.solve_triangular(x.cuda(), b.cuda(), upper=upper, unitriangular=unit),
                    torch.linalg.solve_triangular(x, b, upper=upper, unitriangular=unit),
                    atol=1e-1 if dtype in (torch.float32, torch.complex64) else 1e-7,
                    rtol=1e-3,
                )
    factors = torch.linalg.cholesky(a)
    close(torch.cholesky_solve(b.cuda(), factors.cuda()), torch.cholesky_solve(b, factors))
    close(torch.cholesky_inverse(factors.cuda()), torch.cholesky_inverse(factors))
    lu, pivots = torch.linalg.lu_factor(a)
    for adjoint in (True, False):
        wanted = torch.linalg.lu_solve(lu, pivots, b, adjoint=adjoint)
        close(torch.linalg.lu_solve(lu.cuda(), pivots.cuda(), b.cuda(), adjoint=adjoint), wanted)
    vector = b[..., 0]
    close(torch.linalg.solve(a.cuda(), vector.cuda()), torch.linalg.solve(a, vector))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6)])
def test_decompositions(dtype, batch, shape):
    a = matrices(*batch, *shape, dtype=dtype)
    for driver in (None, "gesvd", "gesvdj", "gesvda"):
        for full in (True, False):
            u, s, vh = torch.linalg.svd(a.cuda(), full_matrices=full, driver=driver)
            wanted = torch.linalg.svd(a, full_matrices=full)
            close(s, wanted[1])
            assert u.shape == wanted[0].shape and vh.shape == wanted[2].shape
            k = min(shape)
            close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a)
            for rows in (u.mH, vh):
                close(rows @ rows.mH, torch.eye(rows.shape[-2], dtype=dtype).expand(*batch, -1, -1))
        close(torch.linalg.svdvals(a.cuda(), driver=driver), torch.linalg.svdvals(a))
    close(torch.linalg.pinv(a.cuda()), torch.linalg.pinv(a))
    close(torch.linalg.matrix_rank(a.cuda()), torch.linalg.matrix_rank(a))
    if shape[0] == shape[1]:
        h = a + a.mH
        for uplo in "LU":
            values, vectors = torch.linalg.eigh(h.cuda(), uplo)
            close(values, torch.linalg.eigvalsh(h, uplo))
            close(torch.linalg.eigvalsh(h.cuda(), uplo), torch.linalg.eigvalsh(h, uplo))
            close(vectors * values[..., None, :] @ vectors.mH, h)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 5])
def test_eigenvalues_of_any_matrix(dtype, batch, n):
    """In the order that LAPACK finds them in, which cuSOLVER's may not be."""
    a = matrices(*batch, n, n, dtype=dtype)
    values, vectors = torch.linalg.eig(a.cuda())
    wide = a.to(values.dtype)
    assert values.shape == a.shape[:-1] and values.dtype == vectors.dtype == torch.linalg.eigvals(a).dtype
    close(vectors * values[..., None, :], wide @ vectors.cpu())
    close(vectors.abs().square().sum(-2), torch.ones(values.shape, dtype=values.dtype.to_real()))
    only = torch.linalg.eigvals(a.cuda())
    for found in (values.cpu(), only.cpu()):
        close(found.sum(-1).cuda(), wide.diagonal(dim1=-2, dim2=-1).sum(-1))
        close(found.square().sum(-1).cuda(), (wide @ wide).diagonal(dim1=-2, dim2=-1).sum(-1))


def test_eigenvalues_that_are_not_finite():
    with pytest.raises(RuntimeError, match="infs or NaNs"):
        torch.linalg.eig(torch.full((2, 2), float("nan"), device="cuda"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("hermitian", [False, True])
def test_symmetric_factors(dtype, batch, hermitian):
    a, b = matrices(*batch, 6, 6, dtype=dtype), matrices(*batch, 6, 2, dtype=dtype, seed=1)
    a = a + (a.mH if hermitian else a.mT)
    here, there = (torch.linalg.ldl_factor_ex(t, hermitian=hermitian) for t in (a, a.cuda()))
    for got, wanted in zip(there, here, strict=True):
        close(got, wanted)
    x = torch.linalg.ldl_solve(there.LD, there.pivots, b.cuda(), hermitian=hermitian)
    close(
        a.cuda() @ x,
        b,
        **({"atol": 1e-2, "rtol": 1e-2} if dtype.itemsize / (1 + dtype.is_complex) == 4 else {}),
    )
    factors, pivots = torch.linalg.ldl_factor(a.cuda(), hermitian=hermitian)
    close(factors, here.LD)
    close(pivots, here.pivots)
    one = (
        torch.linalg.ldl_solve(there.LD[:1], there.pivots[:1], b.cuda(), hermitian=hermitian) if batch else x
    )
    assert one.shape == x.shape


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16])
@pytest.mark.parametrize("batch", BATCHES)
def test_exponentials(dtype, batch):
    for size in (1e-4, 0.1, 1.0, 3.0):
        a = matrices(*batch, 4, 4).to(dtype) * size
        tolerance = {"atol": 1e-2, "rtol": 1e-2} if dtype == torch.float16 else {}
        close(torch.linalg.matrix_exp(a.cuda()), torch.linalg.matrix_exp(a), **tolerance)


@only_emulated
def test_a_library_without_newer_routines():
    """Says so once for each operator, and computes on the CPU."""
    program = """
import warnings
import rushlight as t
warnings.simplefilter("always")
a = t.tensor([[2.0, 1], [1, -3]], device="cuda").to(t.complex64)
with warnings.catch_warnings(record=True) as seen:
    for _ in range(2):
        values, vectors = t.linalg.eig(a)
        ld, pivots = t.linalg.ldl_factor(a, hermitian=True)
        x = t.linalg.ldl_solve(ld, pivots, a, hermitian=True)
    only = t.linalg.eigvals(a)
    t.linalg.ldl_factor(a)
assert (a @ vectors).allclose(vectors * values, atol=1e-5)
assert x.allclose(t.eye(2, device="cuda") + 0j, atol=1e-5)
assert only.is_cuda and values.is_cuda and pivots.is_cuda
print(*sorted(str(w.message).split(":")[0] for w in seen))
"""
    env = {**os.environ, "EMULATED_OLD_LIBRARY": "cuSOLVER", "RUSHLIGHT_CUDA_FALLBACK": "warn"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.stdout == "_linalg_eigvals eig ldl_factor_ex ldl_solve\n", done.stdout + done.stderr


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4)])
def test_least_squares(dtype, shape):
    for batch in ((), (2, 2)):
        a = matrices(*batch, *shape, dtype=dtype)
        b = matrices(*batch, shape[0], 2, dtype=dtype, seed=1)
        there, here = torch.linalg.lstsq(a.cuda(), b.cuda()), torch.linalg.lstsq(a, b, driver="gels")
        close(there.solution, here.solution, atol=1e-2, rtol=1e-2)
        close(there.residuals, here.residuals, atol=1e-2, rtol=1e-2)
    with pytest.raises(RuntimeError, match="one of"):
        torch.linalg.lstsq(a.cuda(), b.cuda(), driver="gelsy")


def test_large_matrices_go_one_by_one():
    a = matrices(2, 520, 520) + 30 * torch.eye(520, dtype=torch.float64)
    b = matrices(2, 520, 1)
    close(torch.linalg.solve(a.cuda(), b.cuda()), torch.linalg.solve(a, b))
    p = a @ a.mT
    close(torch.linalg.cholesky(p.cuda()), torch.linalg.cholesky(p))
    wanted = torch.linalg.solve_triangular(a, b, upper=True)
    close(torch.linalg.solve_triangular(a.cuda(), b.cuda(), upper=True), wanted)


def test_without_exchanges():
    for shape in ((4, 4), (2, 4, 4), (5, 3)):
        a = matrices(*shape) + 5 * torch.eye(*shape[-2:], dtype=torch.float64)
        lu, pivots = torch.linalg.lu_factor(a.cuda(), pivot=False)
        assert (pivots.cpu() == torch.arange(1, min(shape[-2:]) + 1)).all()
        p, low, up = torch.linalg.lu(a.cuda(), pivot=False)
        assert p.numel() == 0
        close(low @ up, a)


def test_verdicts():
    singular = torch.zeros(2, 3, 3, device="cuda", dtype=torch.float64)
    singular[0] = torch.eye(3)
    assert torch.linalg.inv_ex(singular).info.tolist() == [0, 1]
    assert torch.linalg.solve_ex(singular, singular)[1].tolist() == [0, 1]
    assert torch.linalg.cholesky_ex(singular).info.tolist() == [0, 1]
    assert torch.linalg.det(singular).tolist() == [1, 0]
    for f, words in (
        (torch.linalg.inv, "Batch element 1.*singular"),
        (torch.linalg.cholesky, "Batch element 1.*not positive-definite"),
        (lambda a: torch.linalg.solve(a, a), "Batch element 1.*singular"),
        (lambda a: torch.linalg.cholesky_ex(a, check_errors=True), "not positive-definite"),
    ):
        with pytest.raises(torch.linalg.LinAlgError, match=words):
            f(singular)


def test_info_is_not_waited_for():
    waits = torch.cuda.Event()
    a = positive((3,), 4, torch.float64).cuda()
    torch.cuda.synchronize()
    torch.linalg.cholesky_ex(a), torch.linalg.inv_ex(a), torch.linalg.lu_factor_ex(a)
    torch.linalg.solve_ex(a, a), torch.linalg.qr(a), torch.linalg.solve_triangular(a, a, upper=True)
    waits.record()
    if emulated:  # whose streams run only when somebody waits
        assert not waits.query()


@only_emulated
def test_a_failure_of_jacobis_method():
    a = matrices(2, 4, 4)
    a[1, 0, 0] = 12345
    close(torch.linalg.svdvals(a.cuda()), torch.linalg.svdvals(a), atol=1e-6, rtol=1e-9)
    with pytest.raises(torch.linalg.LinAlgError, match="Batch element 1"):
        torch.linalg.svdvals(a.cuda(), driver="gesvdj")
    with pytest.raises(RuntimeError, match="unknown svd driver"):
        torch.linalg.svdvals(a.cuda(), driver="none")


def test_gradients():
    a, b = positive((2,), 4, torch.float64), matrices(2, 4, 3)

    def both(f):
        found = []
        for device in ("cpu", "cuda"):
            x, y = (t.detach().to(device).requires_grad_() for t in (a.clone(), b.clone()))
            f(x, y).sum().backward()
            found.append([g.cpu() for g in (x.grad, y.grad) if g is not None])
        for there, here in zip(*found, strict=True):
            torch.testing.assert_close(there, here, atol=1e-9, rtol=1e-7)

    both(torch.linalg.solve)
    both(lambda x, y: torch.linalg.inv(x) @ y)
    both(lambda x, y: torch.linalg.det(x))
    both(lambda x, y: torch.linalg.slogdet(x)[1])
    both(lambda x, y: torch.linalg.cholesky(x).sin())
    both(lambda x, y: torch.linalg.eigvalsh(x).sin())
    both(lambda x, y: torch.linalg.svdvals(y).sin())
    both(lambda x, y: torch.linalg.qr(y)[1].sin())
    both(lambda x, y: torch.linalg.lstsq(y, x).solution.sin())
    both(lambda x, y: torch.linalg.lu(x)[2].sin())
    both(lambda x, y: torch.linalg.pinv(y).sin())
    both(lambda x, y: torch.linalg.matrix_exp(x / 8))
    both(lambda x, y: torch.linalg.eigvals(x).abs())
    both(lambda x, y: torch.linalg.svdvals(y, driver="gesvda" if y.is_cuda else None).sin())


@needs_two
def test_another_device_and_stream():
    a, b = positive((), 4, torch.float64), matrices(4, 2)
    with torch.cuda.device(1), torch.cuda.stream(torch.cuda.Stream(1)):
        close(torch.linalg.solve(a.to("cuda:1"), b.to("cuda:1")), torch.linalg.solve(a, b))


def test_the_preferred_library():
    ask = torch.backends.cuda.preferred_linalg_library
    assert "Default" in str(ask()) and "Cusolver" in str(ask("cusolver")) and "Cusolver" in str(ask())
    with pytest.raises(RuntimeError, match="Unknown input value"):
        ask("lapack")
    with pytest.raises(RuntimeError, match="MAGMA"):
        ask("magma")
    ask("default")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", *sys.argv[1:]]))
