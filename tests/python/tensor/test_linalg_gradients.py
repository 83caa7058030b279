"""First and second derivatives of torch.linalg, each against differences, and at singular matrices."""

import pytest
from test_linalg import draw, hermitian, positive, square

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck

L = torch.linalg


def symmetric(f):
    return lambda a, *rest: f(a + a.mH, *rest)


def phaseless(v):
    """What of eigenvectors doesn't depend on their signs or phases."""
    return (v.unsqueeze(-1) * v.conj().unsqueeze(-2)).abs().square()


CASES = {
    "lu": (lambda a: L.lu(a)[1:], [(4, 4), (3, 5), (5, 3), (2, 3, 3)]),
    "lu_factor": (lambda a: L.lu_factor(a)[0], [(4, 4)]),
    "lu_solve": (lambda a, b: L.lu_solve(a, PIVOTS, b), [((4, 4), (4, 2))]),
    "lu_solve adjoint": (lambda a, b: L.lu_solve(a, PIVOTS, b, adjoint=True), [((4, 4), (4, 2))]),
    "lu_solve right": (lambda a, b: L.lu_solve(a, PIVOTS, b, left=False), [((4, 4), (2, 4))]),
    "lu_solve right adjoint": (
        lambda a, b: L.lu_solve(a, PIVOTS, b, left=False, adjoint=True),
        [((4, 4), (2, 4))],
    ),
    "solve": (L.solve, [((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((3, 3), (2, 3, 2))]),
    "solve right": (lambda a, b: L.solve(a, b, left=False), [((3, 3), (2, 3))]),
    "inv": (L.inv, [(3, 3), (2, 3, 3)]),
    "det": (L.det, [(3, 3), (2, 3, 3)]),
    "slogdet": (L.slogdet, [(3, 3), (2, 3, 3)]),
    "triangular": (
        lambda a, b: L.solve_triangular(a, b, upper=True),
        [((3, 3), (3, 2)), ((3, 3), (2, 3, 2))],
    ),
    "triangular right": (lambda a, b: L.solve_triangular(a, b, upper=False, left=False), [((3, 3), (2, 3))]),
    "old triangular": (lambda b, a: torch.triangular_solve(b, a, transpose=True)[0], [((3, 2), (3, 3))]),
    "cholesky_solve": (lambda b, a: torch.cholesky_solve(b, a.tril()), [((3, 2), (3, 3))]),
    "cholesky_solve upper": (lambda b, a: torch.cholesky_solve(b, a.triu(), True), [((3, 2), (3, 3))]),
    "cholesky_inverse": (lambda a: torch.cholesky_inverse(a.tril()), [(3, 3)]),
    "qr": (L.qr, [(3, 3), (4, 2), (2, 3, 3)]),
    "qr wide": (L.qr, [(2, 4)]),
    "householder": (L.householder_product, [((4, 3), (2,)), ((2, 3, 3), (2, 3))]),
    "ormqr": (torch.ormqr, [((4, 3), (3,), (4, 2))]),
    "ormqr right": (lambda *t: torch.ormqr(*t, left=False), [((4, 3), (3,), (2, 4))]),
    "ormqr adjoint": (lambda *t: torch.ormqr(*t, transpose=True), [((4, 3), (3,), (4, 2))]),
    "svdvals": (L.svdvals, [(3, 4), (4, 3)]),
    "svd": (lambda a: (phaseless(L.svd(a, False)[0]), L.svdvals(a)), [(3, 3), (4, 2), (2, 4)]),
    "eigvals": (lambda a: L.eigvals(a).abs(), [(3, 3)]),
    "eig": (lambda a: phaseless(L.eig(a)[1]), [(3, 3)]),
    "lstsq": (lambda a, b: L.lstsq(a, b, driver="gelsd")[:2], [((4, 2), (4, 3)), ((2, 4), (2, 1))]),
    "pinv": (L.pinv, [(3, 3), (4, 2), (2, 4)]),
    "matrix_exp": (L.matrix_exp, [(3, 3), (2, 2, 2)]),
    "matrix_power": (lambda a: L.matrix_power(a, -3), [(2, 2)]),
    "nuc": (lambda a: L.matrix_norm(a, "nuc"), [(2, 3)]),
    "cond": (L.cond, [(3, 3)]),
    "multi_dot": (lambda *t: L.multi_dot(t), [((2, 3), (3, 4), (4, 2))]),
    "tensorsolve": (L.tensorsolve, [((2, 3, 6), (2, 3))]),
    "renorm": (lambda a: torch.renorm(a, 2, 0, 1.0), [(3, 4)]),
    "cov": (torch.cov, [(3, 5)]),
    "corrcoef": (torch.corrcoef, [(3, 5)]),
}
PIVOTS = torch.tensor([2, 2, 4, 4], dtype=torch.int32)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_derivatives(name, dtype):
    f, shape_lists = CASES[name]
    for shapes in shape_lists:
        shapes = shapes if isinstance(shapes[0], tuple) else (shapes,)
        inputs = [draw(*s, dtype=dtype, seed=i + 3) for i, s in enumerate(shapes)]
        inputs = [t + 3 * torch.eye(*t.shape[-2:], dtype=dtype) if t.dim() > 1 else t for t in inputs]
        inputs = [t.requires_grad_() for t in inputs]
        real = name not in ("svd", "slogdet")
        if dtype.is_complex and name == "corrcoef":
            continue
        assert gradcheck(f, inputs)
        assert gradgradcheck(f, inputs, atol=1e-4) or not real


HERMITIAN = {
    "cholesky": lambda a: L.cholesky(a @ a.mH + torch.eye(3, dtype=a.dtype)),
    "eigh": lambda a: (L.eigh(a + a.mH)[0], phaseless(L.eigh(a + a.mH)[1])),
    "eigvalsh": lambda a: L.eigvalsh(a + a.mH),
    "pinv": lambda a: L.pinv(a + a.mH, hermitian=True),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", HERMITIAN)
def test_derivatives_of_hermitian_matrices(name, dtype):
    a = draw(3, 3, dtype=dtype, seed=5).requires_grad_()
    assert gradcheck(HERMITIAN[name], [a])
    assert gradgradcheck(HERMITIAN[name], [a], atol=1e-4)


def test_det_at_singular_matrices():
    a = torch.tensor([[[1.0, 2], [2, 4]], [[2.0, 1], [1, 3]], [[0.0, 0], [0, 0]]], dtype=torch.float64)
    adjugate = torch.tensor(
        [[[4.0, -2], [-2, 1]], [[3.0, -1], [-1, 2]], [[0.0, 0], [0, 0]]], dtype=torch.float64
    )
    for create_graph in (False, True):
        x = a.clone().requires_grad_()
        (g,) = torch.autograd.grad(L.det(x).sum(), x, create_graph=create_graph)
        assert torch.allclose(g, adjugate, atol=1e-10)


def test_losses_that_depend_on_a_phase_are_refused():
    a = hermitian(dtype=torch.complex128).requires_grad_()
    with pytest.raises(RuntimeError, match="specified up to multiplication"):
        L.eigh(a)[1].imag.sum().backward()
    a = square(dtype=torch.complex128).requires_grad_()
    with pytest.raises(RuntimeError, match="specified up to multiplication"):
        L.svd(a)[0].imag.sum().backward()


def test_qr_says_which_modes_have_derivatives():
    a = draw(4, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="mode='r'"):
        L.qr(a, "r").R.sum().backward()
    with pytest.raises(RuntimeError, match="nrows > ncols"):
        L.qr(a, "complete").R.sum().backward()


def test_factors_carry_gradients_to_what_is_solved_with_them():
    a = positive().requires_grad_()
    b = draw(4, 1)
    direct = torch.autograd.grad(L.solve(a, b).sum(), a)[0]
    through_lu = torch.autograd.grad(L.lu_solve(*L.lu_factor(a), b).sum(), a)[0]
    assert torch.allclose(direct, through_lu)


def test_lobpcg_is_differentiated_as_eigh_is():
    a = hermitian(n=12).requires_grad_()
    e, x = torch.lobpcg(a, 2, tol=1e-12)
    w, v = L.eigh(a)
    for ours, theirs in [(e, w[-2:]), (x[:, 0] ** 2, v[:, -1] ** 2)]:
        weights = torch.arange(1.0, ours.numel() + 1, dtype=a.dtype)
        weights = weights if ours.numel() == 12 else weights.flip(0)
        theirs = theirs if ours.numel() == 12 else theirs.flip(0)
        g = [torch.autograd.grad((t * weights).sum(), a, retain_graph=True)[0] for t in (ours, theirs)]
        symmetric = [(t + t.mT) / 2 for t in g]
        assert torch.allclose(*symmetric, atol=1e-6)
        assert torch.allclose(g[0], g[0].mT)


@pytest.mark.parametrize("values", ["regular", "one singular", "all singular"])
def test_determinants_under_transforms_need_no_values(values):
    """Singular matrices have another formula; under `vmap` nobody can ask which these are."""
    a = torch.randn(3, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for i in {"regular": (), "one singular": (1,), "all singular": (0, 1, 2)}[values]:
        a[i, 2] = a[i, 0]
    leaf = a.clone().requires_grad_()
    torch.linalg.det(leaf).sum().backward()

    def gradient(x):
        return torch.func.grad(torch.linalg.det)(x)

    torch.testing.assert_close(torch.func.vmap(gradient)(a), leaf.grad)
    torch.testing.assert_close(torch.func.vmap(lambda x: torch.func.vjp(torch.det, x)[1](x.sum())[0])(a),
                               leaf.grad * a.sum((1, 2))[:, None, None])  # fmt: skip
    step = torch.func.vmap(lambda x: torch.func.jvp(torch.linalg.det, (x,), (x,))[1])(a)
    torch.testing.assert_close(step, (leaf.grad * a).sum((1, 2)))
    second = torch.func.vmap(torch.func.hessian(torch.linalg.det))(a)
    torch.testing.assert_close(second, torch.stack([torch.func.hessian(torch.linalg.det)(x) for x in a]))
