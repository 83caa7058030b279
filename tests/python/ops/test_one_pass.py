"""Chains of formulas that run as one pass over memory: the results of the steps one after the other."""

import math

import pytest

import rushlight as torch
from rushlight.nn import functional as F

BOUNDS = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}
DTYPES = list(BOUNDS)
# Halves whose runs are long, no multiple of a tile, and short.
SHAPES = [((6, 1400, 3), 1), ((40, 300), -1), ((40, 300), 0), ((5000, 6), 1), ((2, 3000), -1)]


def near(found, wanted, dtype):
    bound = BOUNDS[dtype]
    torch.testing.assert_close(found.double(), wanted.double(), rtol=bound, atol=bound, equal_nan=True)


def glu_by_parts(x, dim):
    first, second = x.double().chunk(2, dim)
    return first * second.sigmoid()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape,dim", SHAPES)
def test_gated_units(shape, dim, dtype):
    torch.manual_seed(0)
    x = torch.randn(shape).to(dtype)
    grad = torch.randn(x.chunk(2, dim)[0].shape).to(dtype)
    wide = x.double().requires_grad_()
    wanted = torch.autograd.grad(glu_by_parts(wide, dim), wide, grad.double())[0]
    near(F.glu(x, dim), glu_by_parts(x, dim), dtype)
    leaf = x.clone().requires_grad_()
    y = F.glu(leaf, dim)
    near(y.detach(), glu_by_parts(x, dim), dtype)
    near(torch.autograd.grad(y, leaf, grad, retain_graph=True)[0], wanted, dtype)
    spread = torch.stack([grad, grad], -1)[..., 0]  # not side by side
    near(torch.autograd.grad(y, leaf, spread)[0], wanted, dtype)


def test_gated_units_are_one_node():
    x = torch.randn(8, 512, requires_grad=True)
    node = F.glu(x).grad_fn
    assert node.name() == "GluBackward0"
    assert [n.name() for n, _ in node.next_functions] == ["torch::autograd::AccumulateGrad"]


def test_gated_units_twice_and_under_transforms():
    torch.manual_seed(0)
    x = torch.randn(4, 1024, dtype=torch.float64)
    direction = torch.randn(4, 1024, dtype=torch.float64)

    def slope(function):
        leaf = x.clone().requires_grad_()
        first = torch.autograd.grad(function(leaf, 1).sin().sum(), leaf, create_graph=True)[0]
        return first, torch.autograd.grad((first * direction).sum(), leaf)[0]

    for found, wanted in zip(slope(F.glu), slope(glu_by_parts)):
        torch.testing.assert_close(found, wanted)
    mapped = torch.func.vmap(lambda row: F.glu(row))(x)
    torch.testing.assert_close(mapped, glu_by_parts(x, 1))
    out, tangent = torch.func.jvp(F.glu, (x,), (direction,))
    _, wanted = torch.func.jvp(lambda t: glu_by_parts(t, -1), (x,), (direction,))
    torch.testing.assert_close(out, glu_by_parts(x, 1))
    torch.testing.assert_close(tangent, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("eps", [None, 0.0, 1e-6, 0.25, 0.5, 0.7])
def test_logits_of_many_numbers(eps, dtype):
    special = torch.tensor([0, 1, 0.25, 0.75, 0.5, -0.1, 1.1, math.nan, 1e-6], dtype=dtype)
    x = torch.cat([special, torch.rand(5000, dtype=dtype)])
    grad = torch.rand(5009, dtype=dtype)
    few = [part.clone().requires_grad_() for part in x.split(700)]
    whole = x.clone().requires_grad_()
    y = torch.logit(whole, eps)
    (found,) = torch.autograd.grad(y, whole, grad)
    parts = [torch.logit(part, eps) for part in few]
    wanted = torch.autograd.grad(parts, few, grad.split(700))
    near(y, torch.cat(parts), dtype)
    torch.testing.assert_close(found, torch.cat(wanted), equal_nan=True)


@pytest.mark.parametrize(
    "dtype", [*DTYPES, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64], ids=str
)
@pytest.mark.parametrize(
    "sizes", [((5, 7), (3, 4)), ((2, 40), (1, 33)), ((64, 3), (4, 1)), ((3, 1), (9, 30))]
)
def test_kronecker_products_of_matrices(sizes, dtype):
    a, b = (torch.randint(0, 5, size).to(dtype) for size in sizes)
    (m, n), (p, q) = sizes
    wanted = (a.view(m, 1, n, 1) * b.view(1, p, 1, q)).reshape(m * p, n * q)
    found = torch.kron(a, b)
    assert found.dtype == wanted.dtype and torch.equal(found, wanted)
    assert torch.equal(torch.kron(a.t(), b), torch.kron(a.t().contiguous(), b))
    if dtype.is_floating_point:
        leaves = a.clone().requires_grad_(), b.clone().requires_grad_()
        torch.kron(*leaves).sum().backward()
        near(leaves[0].grad, b.sum().expand(m, n), dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_sums_of_squares_of_halves(dtype):
    parts = [torch.randn(n).to(dtype) for n in (1, 700, 40_000)]
    for found, part in zip(torch._foreach_powsum(parts, 2), parts):
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), part.double().square().sum(), rtol=8e-3, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_powers_of_zeros(dtype):
    exponents = [2.5, 2.0, 3.0, -1.0, -2.0, -1.5, 0.0, math.inf, -math.inf, math.nan, 1e30]
    bases = [0.0, -0.0, 1.5, -1.5, math.nan, math.inf, 0.0]
    for e in exponents:
        wanted = []
        for base in bases:
            try:
                value = math.pow(base, e)
            except (ValueError, OverflowError):
                whole = not math.isfinite(e) or float(e).is_integer()
                value = math.nan if base < 0 and not whole else math.inf
                if base == 0 and math.copysign(1, base) < 0 and e == -1:
                    value = -math.inf
            wanted.append(value)
        many = torch.tensor(bases * 100, dtype=dtype)
        expected = torch.tensor(wanted * 100, dtype=dtype)
        exponent = torch.full_like(many, e)
        into = exponent.clone()
        torch.pow(many, into, out=into)
        for found in (many**e, many**exponent, many.clone().pow_(exponent), into):
            torch.testing.assert_close(found, expected, equal_nan=True)
            zero = (many == 0) & (expected == 0)
            assert torch.equal(found[zero].signbit(), expected[zero].signbit())


@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize("sizes", [(5, 20, 1), (5, 1, 1), (1, 7, 1)])
def test_pools_of_volumes_one_element_wide(sizes, last):
    torch.manual_seed(0)
    x = torch.randn(2, 3, *sizes, dtype=torch.float64)
    flat = x[..., 0].clone()
    if last:
        x = x.contiguous(memory_format=torch.channels_last_3d)
    window = tuple(min(3, size) for size in sizes)
    for name in ("avg_pool", "max_pool"):
        a, b = x.clone().requires_grad_(), flat.clone().requires_grad_()
        y = getattr(F, name + "3d")(a, window, 1)
        z = getattr(F, name + "2d")(b, window[:2], 1)
        torch.testing.assert_close(y[..., 0], z)
        grad = torch.randn_like(z)
        (found,) = torch.autograd.grad(y, a, grad[..., None])
        (wanted,) = torch.autograd.grad(z, b, grad)
        torch.testing.assert_close(found[..., 0], wanted)
    values, places = F.max_pool3d(x, window, 1, return_indices=True)
    _, wanted = F.max_pool2d(flat, window[:2], 1, return_indices=True)
    assert torch.equal(places[..., 0], wanted)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("depth", [1, 3, 8, 16, 17, 64])
def test_heads_of_a_projection(depth, dtype):
    torch.manual_seed(0)
    heads, width = 4, 4 * depth
    x, bias = torch.randn(3, 5, 3 * width).to(dtype), torch.randn(3 * width).to(dtype)
    parts = (x + bias).view(3, 5, 3, heads, depth).permute(2, 0, 3, 1, 4)
    q, k, v = torch._transform_bias_rescale_qkv(x, bias, heads)
    near(q, parts[0] / math.sqrt(depth), dtype)
    assert torch.equal(k, parts[1]) and torch.equal(v, parts[2])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 7), (70, 70), (3, 40_000)])
def test_clamps_by_tensors(shape, dtype):
    torch.manual_seed(0)
    x, low, high = (torch.randn(shape).to(dtype) for _ in range(3))
    for column, t in enumerate((x, low, high)):
        t[0, column] = math.nan
    wanted = torch.where(low > x, low, x)
    wanted = torch.where(wanted > high, high, wanted)
    nan = x.isnan() | low.isnan() | high.isnan()
    wanted[nan] = math.nan
    torch.testing.assert_close(x.clamp(low, high), wanted, rtol=0, atol=0, equal_nan=True)
    assert x.clone().clamp_(low, high).nan_to_num(9).equal(wanted.nan_to_num(9))
    torch.testing.assert_close(x.t().clamp(low.t(), high.t()).t(), wanted, rtol=0, atol=0, equal_nan=True)
