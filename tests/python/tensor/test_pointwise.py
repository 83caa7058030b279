"""Pointwise operators against PyTorch: values, promotion, layouts, in-place, gradients of both orders."""

from functools import reduce

import pytest
from samples_activation import ACTIVATION, FLAGGED
from samples_pointwise import BINARY, INTEGER, TERNARY, TESTS, UNARY

import rushlight as torch

oracle = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

FLOATS = ["float32", "float64", "float16", "bfloat16"]


def find(module, name):
    return reduce(getattr, name.split("."), module)


def ours(t):
    if t.dtype == oracle.bfloat16:
        return torch.from_numpy(t.detach().float().numpy().copy()).to(torch.bfloat16)
    return torch.from_numpy(t.detach().numpy().copy())


def check(got, want, wide=False):
    assert str(got.dtype).removeprefix("rushlight.").removeprefix("torch.") == str(want.dtype).removeprefix(
        "torch."
    )
    assert tuple(got.shape) == tuple(want.shape)
    if want.dtype == oracle.bfloat16:
        got, want = got.float(), want.float()
        rtol = atol = 1.6e-2
    else:
        rtol, atol = {
            oracle.float16: (2e-3, 1e-3),
            oracle.float32: (1e-5, 2e-6),
            oracle.complex64: (1e-5, 2e-6),
        }.get(want.dtype, (1e-7, 1e-9))
    np.testing.assert_allclose(
        got.detach().numpy(), want.detach().numpy(force=True), rtol=rtol * (50 if wide else 1), atol=atol
    )


def tensors(row, count, dtype, shapes=((4, 6), (4, 6), (4, 6))):
    g = oracle.Generator().manual_seed(7)
    made = []
    for i in range(count):
        t = oracle.rand(shapes[i], generator=g, dtype=oracle.float64) * (row.high - row.low) + row.low
        made.append(t.to(getattr(oracle, dtype)))
    return made


def ident(row):
    return row.name + "".join(f"-{v}" for v in (*row.extra, *row.kwargs.values()))


def both(row, inputs):
    want = find(oracle, row.name)(*row.first, *inputs, *row.extra, **row.kwargs)
    got = find(torch, row.name)(*row.first, *(ours(t) for t in inputs), *row.extra, **row.kwargs)
    return got, want


ROWS = [(r, 1) for r in UNARY + TESTS + ACTIVATION] + [(r, 2) for r in BINARY] + [(r, 3) for r in TERNARY]
ALL = pytest.mark.parametrize(("row", "count"), ROWS, ids=[f"{ident(r)}-{n}" for r, n in ROWS])


@ALL
@pytest.mark.parametrize("dtype", FLOATS)
def test_values(row, count, dtype):
    inputs = tensors(row, count, dtype)
    try:
        want = find(oracle, row.name)(*row.first, *inputs, *row.extra, **row.kwargs)
    except (RuntimeError, NotImplementedError):
        pytest.skip("PyTorch refuses this type")
    got = find(torch, row.name)(*row.first, *(ours(t) for t in inputs), *row.extra, **row.kwargs)
    check(got, want, wide=row.name in {"tan", "lgamma", "digamma", "erfinv"})


@ALL
def test_integers(row, count):
    if not row.integers:
        pytest.skip("floating only")
    for dtype in ("int64", "int32", "uint8", "bool"):
        inputs = (
            tensors(row, count, dtype) if row.low >= 0 else [abs(t) for t in tensors(row, count, "int64")]
        )
        inputs = [t.to(getattr(oracle, dtype)) for t in inputs]
        try:
            want = find(oracle, row.name)(*row.first, *inputs, *row.extra, **row.kwargs)
        except (RuntimeError, NotImplementedError):
            continue
        check(
            find(torch, row.name)(*row.first, *(ours(t) for t in inputs), *row.extra, **row.kwargs),
            want,
            wide=True,
        )


@pytest.mark.parametrize("row", [r for r in INTEGER], ids=ident)
def test_integer_operators(row):
    for dtype in ("int64", "int32", "int16", "int8", "uint8"):
        got, want = both(row, tensors(row, row.inputs, dtype))
        check(got, want)


@ALL
def test_layouts(row, count):
    if row.name == "nn.functional.glu":
        pytest.skip("halves a dimension")
    base = tensors(row, count, "float64", [(6, 4)] * 3)
    got, want = both(row, base)
    transposed = find(torch, row.name)(*row.first, *(ours(t).t() for t in base), *row.extra, **row.kwargs)
    assert tuple(transposed.shape) == (4, 6)
    check(transposed.t(), want)
    if str(want.dtype) == "torch.float64" and row.name != "mvlgamma":  # a sum over a dimension of its own
        assert tuple(transposed.stride()) == (1, 4)
    if count > 1:
        shapes = [(5, 1, 3), (2, 1), (3,)]
        check(*both(row, tensors(row, count, "float64", shapes)))
    empty = find(torch, row.name)(*row.first, *(ours(t)[:0] for t in base), *row.extra, **row.kwargs)
    assert tuple(empty.shape) == (0, 4)


@ALL
def test_inplace(row, count):
    if not row.inplace or "." in row.name:
        pytest.skip("no in-place form")
    inputs = tensors(row, count, "float64")
    want, got = inputs[0].clone(), ours(inputs[0])
    getattr(want, row.name + "_")(*inputs[1:], *row.extra, **row.kwargs)
    same = getattr(got, row.name + "_")(*(ours(t) for t in inputs[1:]), *row.extra, **row.kwargs)
    assert same is got
    check(got, want)


@ALL
def test_gradients(row, count):
    if not row.grad:
        pytest.skip("no gradient")
    order = 1 if row.name == "nn.functional.hardsigmoid" else 2  # PyTorch stops there
    inputs = tensors(row, count, "float64")
    results = []
    for module, convert in ((oracle, lambda t: t.clone()), (torch, ours)):
        leaves = [convert(t).requires_grad_() for t in inputs]
        y = find(module, row.name)(*row.first, *leaves, *row.extra, **row.kwargs)
        cotangent = convert(
            oracle.linspace(0.5, 1.5, y.numel(), dtype=oracle.float64)
            .reshape(tuple(y.shape))
            .to(oracle.float64)
        )
        first = module.autograd.grad(y, leaves, cotangent, create_graph=True, allow_unused=True)
        total = [g for g in first if g is not None and g.requires_grad and order == 2]
        second = (
            module.autograd.grad(sum(g.sum() for g in total), leaves, allow_unused=True)
            if total
            else [None] * count
        )
        results.append((first, second))
    for want, got in zip(results[0], results[1], strict=True):
        for w, g in zip(want, got, strict=True):
            if w is None and g is None:
                continue
            w = oracle.zeros_like(inputs[0]) if w is None else w
            g = torch.zeros_like(ours(inputs[0])) if g is None else g
            check(g, w, wide=True)


@pytest.mark.parametrize("name", FLAGGED)
def test_inplace_flag(name):
    x = oracle.linspace(-4, 4, 12)
    want = getattr(oracle.nn.functional, name)(x)
    y = ours(x)
    assert getattr(torch.nn.functional, name)(y, inplace=True) is y
    check(y, want)


@pytest.mark.parametrize("op", ["add", "mul", "sub", "div", "pow", "maximum", "eq", "lt"])
def test_promotion(op):
    kinds = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]
    operands = [oracle.ones(2, dtype=getattr(oracle, k)) for k in kinds] + [
        oracle.ones((), dtype=getattr(oracle, k)) for k in kinds
    ]
    for a in operands:
        for b in [*operands, 2, 2.5, True]:
            try:
                want = getattr(oracle, op)(a, b)
            except (RuntimeError, TypeError, NotImplementedError):
                continue
            if want.dtype == oracle.complex32:
                continue  # no such type here: half and complex give complex64
            got = getattr(torch, op)(ours(a), ours(b) if isinstance(b, oracle.Tensor) else b)
            check(got, want, wide=True)


def test_refusals():
    a, b = torch.ones(2, 3), torch.ones(4)
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        a + b
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        torch.ones(3, dtype=torch.int64).add_(1.5)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.ones(3, dtype=torch.int64) // torch.zeros(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="bool tensor"):
        -torch.ones(3, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.ones(3).expand(2, 3).add_(1)
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        x = torch.ones(5)
        x[1:].add_(x[:-1])
    with pytest.raises(RuntimeError, match="negative integer powers"):
        torch.ones(3, dtype=torch.int64) ** -1


def test_where_and_masks():
    m = oracle.tensor([[True, False, True]])
    a, b = oracle.arange(6.0).reshape(2, 3), oracle.tensor(-1.0)
    check(torch.where(ours(m), ours(a), ours(b)), oracle.where(m, a, b))
    check(torch.where(ours(m), ours(a), 3), oracle.where(m, a, 3))
    check(ours(a).masked_fill(ours(m), 9.0), a.masked_fill(m, 9.0))
    assert torch.equal(ours(a), ours(a)) and not torch.equal(ours(a), ours(a) + 1)
    assert torch.allclose(ours(a), ours(a) + 1e-9)


def test_channels_last_is_kept():
    x = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for y in (x + 1, x.exp(), x * torch.rand(3, 1, 1), x.clone(), x.double(), torch.where(x > 0, x, -x)):
        assert y.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("n", [1, 3, 15, 16, 17, 1000, 100_003])
def test_value_does_not_depend_on_position(n):
    for f in (torch.exp, torch.tanh, torch.erf, torch.nn.functional.gelu):
        y = f(torch.full((n,), 0.7))
        assert bool((y == y[0]).all())


def test_factories():
    for name, args in [
        ("arange", (5,)),
        ("arange", (1, 10, 2)),
        ("arange", (0.0, 1.0, 0.1)),
        ("linspace", (0, 1, 7)),
        ("logspace", (0, 2, 5)),
        ("eye", (3,)),
        ("eye", (2, 4)),
        ("full", ((2, 3), 7)),
        ("full", ((2,), 1.5)),
        ("full", ((2,), True)),
        ("zeros", (2, 3)),
        ("ones", ((2, 3),)),
        ("tril_indices", (3, 4, 1)),
        ("triu_indices", (3, 4, -1)),
        ("range", (1, 4)),
    ]:
        check(getattr(torch, name)(*args), getattr(oracle, name)(*args))
    x = oracle.arange(24.0).reshape(2, 3, 4)
    for k in (-1, 0, 2):
        check(ours(x).tril(k), x.tril(k))
        check(ours(x).triu(k), x.triu(k))
    with pytest.raises(RuntimeError):
        torch.zeros(-1)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        torch.arange(0, 5, 0)


def test_casts_agree():
    values = oracle.tensor([-3.7, -1.0, 0.0, 0.4, 1.0, 2.5, 100.6])
    kinds = [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "bool",
        "complex64",
    ]
    for a in kinds:
        source = values.to(getattr(oracle, a))
        for b in kinds:
            if a == "complex64" and b not in ("complex64", "bool"):
                continue
            want = source.to(getattr(oracle, b))
            got = torch.from_numpy(values.numpy()).to(getattr(torch, a)).to(getattr(torch, b))
            assert (
                got.to(torch.complex64 if b == "complex64" else torch.float64).tolist()
                == want.to(oracle.complex64 if b == "complex64" else oracle.float64).tolist()
            )


@pytest.mark.parametrize("row", [3, 15, 16, 17, 40, 63, 64, 100, 700])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16", "complex64"])
def test_rows_of_any_length_are_computed_where_they_lie(row, dtype):
    rng, kind = np.random.default_rng(row), getattr(torch, dtype)

    def operand(*sizes):
        return torch.tensor(rng.integers(-9, 9, sizes)).to(kind)

    x, y = operand(3, 5, 7, row + 3)[:, :, :, 2:-1], operand(3, 5, 7, row + 1)[:, 1:, :, :-1]
    column, plane, few = operand(3, 4, 7, 1), operand(4, 1, row), operand(3, 1, 7, row)
    x = x[:, 1:]
    for a, b in ((x, y), (x, column), (column, y), (plane, x), (few, column), (column, few), (plane, column)):
        a, b = torch.broadcast_tensors(a, b)
        apart = a.contiguous(), b.contiguous()
        assert torch.equal(a * b, apart[0] * apart[1]) and torch.equal(a + b, apart[0] + apart[1])
        assert torch.equal(a.eq(b), apart[0].eq(apart[1])) and torch.equal(-a, -apart[0])
        assert torch.equal(torch.where(a.eq(b), a, b), torch.where(apart[0].eq(apart[1]), *apart))
        assert torch.equal(torch.addcmul(a, a, b), torch.addcmul(apart[0], *apart))
        room = torch.zeros(3, 4, 7, row + 5, dtype=kind)[:, :, :, 5:]
        assert torch.equal(torch.sub(a, b, out=room), apart[0] - apart[1])
