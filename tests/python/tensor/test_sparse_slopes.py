"""Gradients through functions of sparse tensors, and triangular systems with sparse matrices."""

import math

import pytest

import rushlight as torch

DENSE = torch.tensor([[0.0, 0.5, 0.0], [0.25, 0.0, 0.75], [0.0, 0.0, 0.1]], dtype=torch.float64)
FUNCTIONS = "abs asin asinh atan atanh erf erfinv expm1 log1p neg relu sin sinh sqrt tan tanh".split()
LAYOUTS = ["to_sparse", "to_sparse_csr", "to_sparse_csc"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_stay_sparse(name, layout):
    function = getattr(torch, name)
    x = getattr(DENSE, layout)().requires_grad_()
    function(x).backward(x.detach().sign())
    assert x.grad.layout == x.layout
    listed = DENSE[DENSE != 0].requires_grad_()
    function(listed).sum().backward()
    assert torch.equal(x.grad.to_dense()[DENSE != 0], listed.grad)
    assert x.grad.to_dense()[DENSE == 0].eq(0).all()


def test_relu_cuts_what_is_negative():
    x = (DENSE - 0.3 * (DENSE != 0)).to_sparse_csr().requires_grad_()
    torch.relu(x).backward(x.detach().sign().abs())
    assert torch.equal(x.grad.to_dense(), (x.detach().to_dense() > 0).double())


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unitriangular", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_triangular_systems(layout, upper, unitriangular, transpose, dtype):
    torch.manual_seed(0)
    full = torch.rand(5, 5, dtype=dtype) + torch.eye(5, dtype=dtype)
    full[1, 3] = full[4, 2] = 0
    b = torch.rand(5, 2, dtype=dtype)
    options = {"upper": upper, "unitriangular": unitriangular, "transpose": transpose}
    expected = torch.triangular_solve(b, full, **options).solution
    found = torch.triangular_solve(b, getattr(full, layout)(), **options)
    torch.testing.assert_close(found.solution, expected)
    assert found.cloned_coefficient.numel() == 0
    x, none = torch.empty(0, dtype=dtype), torch.empty(0, dtype=dtype)
    torch.triangular_solve(b, getattr(full, layout)(), **options, out=(x, none))
    torch.testing.assert_close(x, expected)


def test_triangular_systems_at_the_edges():
    b = torch.rand(3, 2, dtype=torch.float64, requires_grad=True)
    matrix = (DENSE + torch.eye(3)).to_sparse_csr()
    torch.autograd.gradcheck(lambda b: torch.triangular_solve(b, matrix, upper=False).solution, (b,))
    torch.autograd.gradcheck(lambda b: torch.triangular_solve(b, matrix, transpose=True).solution, (b,))
    zeros = torch.zeros(3, 3, dtype=torch.float64).to_sparse_csr()
    assert torch.triangular_solve(b, zeros).solution.isnan().all()
    with pytest.raises(NotImplementedError, match="no gradient of a sparse matrix"):
        torch.triangular_solve(b, matrix.requires_grad_()).solution.sum().backward()
    with pytest.raises(RuntimeError, match="Incompatible matrix sizes"):
        torch.triangular_solve(torch.rand(4, 2, dtype=torch.float64), matrix)


def test_what_has_no_second_derivative_says_so():
    source = torch.tensor([0.0, 0.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    start = torch.rand(3, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([0, 0, 1, 1])
    y = start.scatter_reduce(0, index, source, "prod").sum()
    (grad,) = torch.autograd.grad(y, source, retain_graph=True)
    assert grad[:2].eq(0).all()
    with pytest.raises(RuntimeError, match="Double backward is unsupported for src when >1 zeros"):
        torch.autograd.grad(y, source, create_graph=True)
    single = torch.tensor([0.0, 3.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradgradcheck(lambda s: start.scatter_reduce(0, index, s, "prod"), (single,))


def test_second_derivatives_of_lobpcg():
    torch.manual_seed(0)
    a = torch.rand(6, 6, dtype=torch.float64) + torch.diag(torch.arange(6.0, dtype=torch.float64) * 3)
    b = torch.rand(6, 6, dtype=torch.float64)
    first = torch.rand(6, 2, dtype=torch.float64)

    def pairs(a, b):
        a, b = (a + a.T) / 2, b @ b.T / 6 + torch.eye(6, dtype=torch.float64)
        e, v = torch.lobpcg(a, 2, B=b, X=first, niter=300, tol=1e-14)
        return e, v.abs()

    torch.autograd.gradgradcheck(pairs, (a.requires_grad_(), b.requires_grad_()), atol=1e-4)


@pytest.mark.parametrize(
    ("x", "a", "b", "expected"),
    [
        (0.000947, 0.01, 10.0, 0.3973687726050602),
        (0.0094, 0.01, 1.0, 4.428652184861506),
        (0.09, 0.01, 0.1, 102.42703473397111),
        (0.44, 0.01, 0.01, 2236.2580784360434),
        (0.9, 5.0, 0.5, 0.19890327199652227),
    ],
)
def test_slopes_of_dirichlet_samples(x, a, b, expected):
    """Against integrals in forty digits: small concentrations lie where t underflows and log(t) does not."""
    x, a, total = (torch.tensor([v], dtype=torch.float64) for v in (x, a, a + b))
    assert math.isclose(torch._dirichlet_grad(x, a, total).item(), expected, rel_tol=1e-9)


def test_types_of_results_in_out():
    x = torch.rand(3, 3)
    found = torch.max(x, 0, out=(torch.empty(3), torch.empty(3, dtype=torch.int64)))
    assert type(found) is torch.return_types.max_out and found.values.shape == (3,)
    assert type(torch.max(x, 0)) is torch.return_types.max
    assert type(torch.linalg.qr(x, out=(torch.empty(0), torch.empty(0)))) is torch.return_types.linalg_qr_out
    assert not hasattr(torch.return_types, "nothing_out")
    with pytest.raises(TypeError, match="can't be cast to the desired output type Long"):
        torch.cat([x, x], out=torch.empty(0, dtype=torch.int64))


def test_products_of_sparse_tensors_broadcast():
    a = torch.rand(2, 3, 4, 5).to_sparse(2)
    for shape in ((2, 3, 1, 5), (2, 3, 4, 1), (2, 1, 4, 5), (1, 3, 1, 1)):
        b = torch.rand(shape).to_sparse(2)
        for x, y in ((a, b), (b, a)):
            product = x * y
            assert product.is_sparse
            torch.testing.assert_close(product.to_dense(), x.to_dense() * y.to_dense())


def test_composites_write_to_sparse_tensors():
    x = DENSE.to_sparse()
    for name in ("deg2rad", "rad2deg", "square"):
        function, out = getattr(torch, name), torch.zeros(3, 3, dtype=torch.float64).to_sparse()
        assert function(x, out=out) is out
        torch.testing.assert_close(out.to_dense(), function(DENSE))


def test_new_of_a_sparse_tensor_is_empty():
    made = DENSE.to_sparse().new()
    assert made.is_sparse and made.shape == (0,) and made.dtype == DENSE.dtype


def test_sparse_tensors_as_subclasses():
    class Mine(torch.Tensor):
        pass

    x = DENSE.to_sparse()
    mine = x.as_subclass(Mine)
    assert type(mine) is Mine and mine.is_sparse
    masked = torch.masked.masked_tensor(DENSE, DENSE != 0).to_sparse()
    total = masked + masked
    assert torch.equal(total.get_data().to_dense(), 2 * DENSE)
    other = torch.masked.masked_tensor(DENSE, DENSE > 0.2).to_sparse()
    with pytest.raises(ValueError, match="Input masks must match"):
        masked + other


def test_gradients_of_lobpcg_are_symmetric():
    """Those of the symmetric part: a matrix that finite differences moved is none the iteration is for."""
    torch.manual_seed(0)
    a = torch.rand(7, 7, dtype=torch.float64) + torch.diag(torch.arange(7.0, dtype=torch.float64) * 3)
    a = a.requires_grad_()
    first = torch.eye(7, 2, dtype=torch.float64)
    e, v = torch.lobpcg(a, 2, X=first)
    (e.sum() + v.abs().sum()).backward()
    assert torch.allclose(a.grad, a.grad.mT)
    wanted = torch.linalg.eigvalsh((a + a.mT).detach() / 2)[-2:].flip(0)
    torch.testing.assert_close(e.detach(), wanted)

    def pairs(a):
        e, v = torch.lobpcg(a, 2, X=first, tol=1e-13)
        return e, v.abs()

    torch.autograd.gradcheck(pairs, (a,), check_batched_grad=False)
