"""Pointwise operators against PyTorch: promotion, broadcasting, how results lie in memory, casts."""

import numpy as np
import pytest
from engine import arguments, compare, convert, resolve
from loader import ROWS, main_dtype, records_of, samples
from samples_activation import FLAGGED

import rushlight as torch

oracle = pytest.importorskip("torch")


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


POINTWISE = pytest.mark.parametrize(
    "row",
    [row for row in ROWS if records_of(row) and all(r["family"] == "pointwise" for r in records_of(row))],
    ids=lambda row: row.id,
)


def operands(row):
    """The tensors of a row's first call as arrays, and a function of (library, tensors in their places)."""
    sample = samples(row)[0]
    places = [i for i, a in enumerate(sample.args) if isinstance(a, np.ndarray)]

    def call(module, tensors):
        args, kwargs = arguments(module, sample, main_dtype(row))
        args = list(args)
        for i, tensor in zip(places, tensors, strict=True):
            args[i] = tensor
        return resolve(module, row.name)(*args, **kwargs)

    return [sample.args[i] for i in places], call


def tensors(module, row, arrays):
    return [convert(module, array, main_dtype(row)) for array in arrays]


@POINTWISE
def test_results_lie_as_their_operands(row):
    arrays, call = operands(row)
    if any(array.shape != (3, 4) for array in arrays):
        pytest.skip("its first operands are no matrices")
    turned = [t.t() for t in tensors(torch, row, [array.T.copy() for array in arrays])]
    result = call(torch, turned)
    # PyTorch's masked_fill makes contiguous results, of which programs take views.
    assert result.stride() == ((4, 1) if row.name == "masked_fill" else (1, 3))
    compare(row, main_dtype(row), result, call(torch, tensors(torch, row, arrays)))


@POINTWISE
def test_operands_broadcast(row):
    arrays, call = operands(row)
    if len(arrays) < 2:
        pytest.skip("one operand")
    arrays = [np.resize(array, shape) for array, shape in zip(arrays, [(5, 1, 3), (2, 1), (3,)])]
    compare(row, main_dtype(row), *(call(m, tensors(m, row, arrays)) for m in (torch, oracle)))


@POINTWISE
def test_operands_without_elements(row):
    arrays, call = operands(row)
    arrays = [np.zeros((0, 4), array.dtype) for array in arrays]
    compare(row, main_dtype(row), *(call(m, tensors(m, row, arrays)) for m in (torch, oracle)))


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


HALVES = ("float16", "bfloat16")


@pytest.mark.parametrize("dtype", HALVES)
def test_nextafter_steps_by_units_of_the_half_type(dtype):
    a = [float("inf"), 1.0, 0.0, -0.0, -1.0, float("nan"), 3.0, 65504.0, -2.0]
    b = [0.0, 2.0, -1.0, 1.0, 0.0, 1.0, 3.0, float("inf"), -9.0]
    ours, theirs = (
        m.nextafter(m.tensor(a, dtype=getattr(m, dtype)), m.tensor(b, dtype=getattr(m, dtype))).tolist()
        for m in (torch, oracle)
    )
    assert str(ours) == str(theirs)


@pytest.mark.parametrize("dtype", HALVES)
def test_truncated_quotients_of_half_types_are_rounded_first(dtype):
    values = [i * 0.37 + 0.5 for i in range(200)]
    ours, theirs = (
        m.div(
            m.tensor(values, dtype=getattr(m, dtype)),
            m.tensor(values[::-1], dtype=getattr(m, dtype)) / 30,
            rounding_mode="trunc",
        ).tolist()
        for m in (torch, oracle)
    )
    assert ours == theirs


def test_heaviside_of_nan_is_zero():
    x = torch.tensor([float("nan"), 0.0, -1.0, 2.0])
    assert torch.heaviside(x, torch.full((4,), 0.5)).tolist() == [0, 0.5, 0, 1]


def test_masked_fill_takes_every_value_that_fits():
    values = [2.5, 3, True, 300, 1e30, 2 + 0j, 1 + 1j, -1, float("nan")]

    def outcome(m, dtype, value):
        x, mask = m.tensor([1, 0], dtype=getattr(m, dtype)), m.tensor([True, False])
        try:
            return str(x.masked_fill(mask, value(m)).tolist())
        except RuntimeError as error:
            return str(error)

    for dtype in ("bool", "uint8", "int32", "float16", "float32", "complex64"):
        for value in values:
            makes = (lambda m, v=value: v), (lambda m, v=value: m.tensor(v))
            for make in makes:
                assert outcome(torch, dtype, make) == outcome(oracle, dtype, make)


def test_quotients_by_zero_in_addcdiv():
    def program(m):
        x, zero = m.tensor([1 + 1j, 2 - 1j, 0j]), m.zeros(3, dtype=m.complex64)
        return str(m.addcdiv(x, x, zero).tolist()), m.addcdiv(
            m.ones(1), m.ones(1), m.full((1,), 3.0), value=0.7
        )

    (ours, mine), (theirs, other) = program(torch), program(oracle)
    assert ours == theirs and mine.tolist() == other.tolist()


def test_lerp_of_integers_takes_the_weights_dtype():
    def program(m):
        x = m.tensor([-3, 1], dtype=m.int8)
        return m.lerp(x, x + 2, m.tensor(0.25)).tolist()

    assert program(torch) == program(oracle)
    with pytest.raises(NotImplementedError):
        torch.lerp(torch.tensor([1]), torch.tensor([2]), 0.5)


@pytest.mark.parametrize("whole", [torch.int32, torch.int64])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_ldexp_keeps_the_type_of_what_is_scaled(half, whole):
    x = torch.tensor([1.0, 3.0]).to(getattr(torch, half))
    y = torch.ldexp(x, torch.tensor([2, -1], dtype=whole))
    assert y.dtype == x.dtype and y.tolist() == [4.0, 1.5]


@pytest.mark.parametrize("name, least", [("int8", -128), ("int64", -(2**63))])
def test_multiples_of_the_least_number(name, least):
    def of(function, a, b):
        dtype = getattr(torch, name)
        return function(torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype)).item()

    assert of(torch.gcd, least, least) == least and of(torch.gcd, least, 6) == 2
    assert of(torch.lcm, least, 7) == least  # wrapped around, and no trap of the processor
    assert of(torch.lcm, least, 0) == 0
