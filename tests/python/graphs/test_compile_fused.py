"""Chains of pointwise operators that `torch.compile` fuses: equal to the operators, to the last bit."""

import pytest

import rushlight as torch
from rushlight._inductor import config as inductor_config

F = torch.nn.functional


@pytest.fixture(autouse=True)
def no_measuring(monkeypatch):
    monkeypatch.setattr(inductor_config, "measure", False)
    torch._dynamo.reset()


def fused_nodes(function, *args):
    """How many operators are left when a program is compiled, and how many of them are chains."""
    from rushlight._dynamo._capture import capture
    from rushlight._inductor.compile_fx import compile_fx

    captured = capture(function, args, {})
    compile_fx(captured.module, captured.example_inputs)
    names = [n.target._opname for n in captured.graph.nodes if hasattr(n.target, "_opname")]
    return len(names), names.count("_fused_pointwise")


def chain(x, y):
    a = (x * 2 + y).tanh()
    return (a - y / 3).sigmoid() * a


def activations(x, y):
    return (
        F.gelu(x)
        + F.silu(y) * F.leaky_relu(x, 0.2)
        - F.hardswish(y.clamp(-1, 2))
        + F.gelu(y, approximate="tanh")
    )


def masks(x, y):
    big = x > y
    return torch.where(big, x + y, x - y).masked_fill(y <= -0.5, -7.0), big, torch.where(x != x, y, x * 0)


def several_outputs(x, y):
    a = x + y
    b = a.exp()
    return a, b, b.sum(-1), (b * a).log1p()


def numbers(x, y):
    return 1 / (2 - x) + (-0.0 * y) + (y - 5) * 3 + float("inf") * x


def powers(x, y):
    return x**3 + y**0.5 * x**-1 - (y + 1) ** -0.5 * x**2.7 + x**4 - (y * y) ** x


def bounded(x, y):
    return F.hardtanh(x, -0.5, 2) * F.softplus(y, 2, 5) + F.threshold(x, 0.3, -2) - F.softplus(x)


def elementary(x, y):
    a = x.exp2().log2() + x.abs().log10() - x.tan() * y.sinh() + (x / 4).cosh() + x.atan() - y.asinh()
    return a - (x / 9).asin() * (y / 9).acos()


def whole(x, y):
    a = y.erfc() - x.floor() + y.ceil() * x.trunc() + x.sign() * torch.atan2(x, y)
    return a + (x.abs() + 1).acosh() * (y / 9).atanh() + torch.fmax(x, y) - torch.fmin(y, x)


FUNCTIONS = [chain, activations, masks, several_outputs, numbers, powers, bounded, elementary, whole]
SHAPES = [
    ((7,), (7,)),
    ((5, 300), (300,)),
    ((5, 300), (5, 1)),
    ((3, 1, 40), (7, 1)),
    ((33, 65), ()),
    ((0, 4), (4,)),
    ((1, 1), (2000, 3)),
    ((2, 3, 5, 2, 2), (2, 2)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_equal_to_the_operators(function, shapes, dtype):
    torch.manual_seed(0)
    x, y = (torch.randn(shape, dtype=dtype) * 3 for shape in shapes)
    if x.numel() > 4:
        x.view(-1)[:4] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])
    fast = torch.compile(function)
    for _ in range(2):
        torch.testing.assert_close(fast(x, y), function(x, y), rtol=0, atol=0, equal_nan=True)


def test_strides():
    x, y = torch.randn(40, 60), torch.randn(60, 40)
    for a, b in [(x.t(), y), (x[::2, ::3], y[:20, :20]), (x[:, :1].expand(40, 60), x), (x.t(), y[:, 3:4])]:
        torch.testing.assert_close(torch.compile(chain)(a, b), chain(a, b), rtol=0, atol=0)


def test_many_elements_and_threads():
    x, y = torch.randn(300, 1001), torch.randn(1001)
    expected, before = chain(x, y), torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            assert torch.equal(torch.compile(chain)(x, y), expected)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_that_chains_are_found(function):
    left, chains = fused_nodes(function, torch.randn(9, 8), torch.randn(8))
    assert 1 <= chains <= left <= 4


def test_writes_keep_their_place():
    def f(x, y):
        a = x + 1
        x.mul_(2)
        b = a * x
        y.add_(b)
        return (b - y).relu() + a

    fast = torch.compile(f)
    for _ in range(2):
        x, y = torch.randn(4, 5), torch.randn(4, 5)
        u, v = x.clone(), y.clone()
        assert torch.equal(fast(x, y), f(u, v)) and torch.equal(x, u) and torch.equal(y, v)
        same, twin = x.clone(), x.clone()
        assert torch.equal(fast(same, same), f(twin, twin)) and torch.equal(same, twin)


def test_what_lies_between():
    def f(x, w):
        a = x * 2
        b = (a @ w).relu()
        return a + b, a.sum() * b - a

    x, w = torch.randn(6, 6), torch.randn(6, 6)
    for got, expected in zip(torch.compile(f)(x, w), f(x, w)):
        torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_other_dtypes_are_left_alone():
    def f(x, y):
        return (x + y) * 2 - y

    for dtype in (torch.int64, torch.complex64, torch.uint8):
        x, y = (torch.randn(5, 6) * 9).abs().to(dtype), torch.ones(6, dtype=dtype)
        assert torch.equal(torch.compile(f)(x, y), f(x, y))
    assert torch.equal(torch.compile(f)(torch.ones(3), torch.arange(3)), f(torch.ones(3), torch.arange(3)))


def test_programs_that_make_no_sense():
    run = torch.ops.aten._fused_pointwise
    x = torch.ones(3)
    assert run([x, x], [1, 0, 0, 1, 1, 2], [], torch.float32)[0].tolist() == [2, 2, 2]
    for code, numbers in [
        ([], []),
        ([1], []),
        ([1, 0, 0, 1, 1], []),
        ([1, 0, 0, 1, 1, 3], []),
        ([1, 0, 0, 2, 1, 2], []),
        ([1, 0, 0, -1, 1, 2], []),
        ([1, 100000, 0, 1, 1, 2], []),
        ([1, -1, 0, 1, 1, 1, 2], []),
        ([1, 0, 0, 1, 0], []),
        ([1, 0, 0, 1, 1, 2, 5], []),
        ([-1], []),
        ([1 << 40], []),
    ]:
        with pytest.raises((ValueError, RuntimeError), match="_fused_pointwise"):
            run([x, x], code, numbers, torch.float32)
    with pytest.raises(ValueError, match="computes in floating-point types"):
        run([x], [0, 1, 0], [], torch.int64)
    with pytest.raises(ValueError, match="expected 1 to 64 inputs"):
        run([], [0, 1, 0], [], torch.float32)


@pytest.mark.parametrize("grad", [False, True])
def test_fused_chains_lie_in_memory_as_the_program_says(grad):
    def f(x, c):
        q = x.view(2, 10, 4, 8).transpose(1, 2)
        turned = torch.cat((-q[..., 4:], q[..., :4]), -1)
        mixed = q * c + turned * 2  # of one tensor in another order, and of one in order
        return mixed, (turned * 2 + c, mixed.transpose(1, 2).reshape(2, 10, 32).tanh())

    x, c = torch.randn(2, 10, 32, requires_grad=grad), torch.randn(10, 8)
    fast = torch.compile(f, fullgraph=True)
    (a, (b, d)), (e, (g, h)) = fast(x, c), f(x, c)
    for mine, theirs in ((a, e), (b, g), (d, h)):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
        assert mine.stride() == theirs.stride()
