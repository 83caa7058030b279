"""Functions that are computed by vectors: a value depends on its argument alone, and edges have theirs."""

import math

import numpy as np
import pytest

import rushlight as torch

NAMES = "exp log log2 log10 log1p exp2 expm1 atanh sin cos tan asin acos erf erfinv sqrt logit lgamma"
FUNCTIONS = {name: getattr(torch, name) for name in NAMES.split()} | {"entr": torch.special.entr}
inf, nan = float("inf"), float("nan")
EDGES = [0.0, -0.0, inf, -inf, nan, -1.0, 1.0, -2.5, 1e30, -1e30, 90.0, -90.0, -110.0, 720.0, -750.0]


def arguments(dtype):
    random = np.random.default_rng(0)
    values = random.uniform(0.01, 0.99, 203).astype(dtype)
    values[::5] *= random.uniform(-30, 30, values[::5].shape).astype(dtype)
    info = np.finfo(dtype)
    edges = [
        *EDGES,
        info.smallest_subnormal,
        info.tiny,
        info.max,
        -info.max,
        info.tiny * 3.7,
        1 - info.epsneg,
    ]
    return values, np.array(edges, dtype)


def bits(values):
    numbers = np.where(np.isnan(values), np.array(nan, values.dtype), values)
    return numbers.view("int32" if values.itemsize == 4 else "int64").tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_neighbours_change_nothing(name, dtype):
    values, edges = arguments(dtype)
    function = FUNCTIONS[name]
    apart = function(torch.from_numpy(values)).numpy()
    for seed in range(4):  # some of the numbers among edges, at other places and another length
        order = np.random.default_rng(seed)
        chosen = order.permutation(len(values))[: 150 + 11 * seed]
        mixed = np.concatenate([values[chosen], np.repeat(edges, 1 + seed)])
        place = order.permutation(len(mixed))
        together = function(torch.from_numpy(mixed[place])).numpy()
        back = np.empty_like(together)
        back[place] = together
        assert bits(back[: len(chosen)]) == bits(apart[chosen])
    alone = [function(torch.tensor([x], dtype=getattr(torch, dtype))).item() for x in edges.tolist()]
    for x, value in zip(edges.tolist(), alone):
        others = torch.full((67,), 0.25, dtype=getattr(torch, dtype))
        others[33] = x
        assert str(function(others)[33].item()) == str(value), x
    into = torch.from_numpy(values.copy())
    assert bits(function(into, out=into).numpy()) == bits(apart)


@pytest.mark.parametrize(("dtype", "low", "least"), [("float32", -150, -126), ("float64", -1075, -1022)])
def test_powers_of_two_below_the_least_normal_number(dtype, low, least):
    x = np.linspace(low, least + 2, 1003).astype(dtype)
    whole = np.arange(low + 1, least + 2).astype(dtype)
    found = torch.exp2(torch.from_numpy(x)).numpy()
    expected = np.exp2(x.astype(np.longdouble))
    unit = float(np.finfo(dtype).smallest_subnormal)
    assert (abs(found - expected) <= 0.501 * unit + 1.2e-7 * expected).all()
    assert (
        torch.exp2(torch.from_numpy(whole)).tolist()
        == np.ldexp(np.array(1, dtype), whole.astype(int)).tolist()
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_edges(dtype):
    large = float(np.finfo(dtype).max)

    def values(name, *numbers):
        padded = [*numbers, *[0.5] * 40]
        return FUNCTIONS[name](torch.tensor(padded, dtype=getattr(torch, dtype))).tolist()[: len(numbers)]

    assert str(values("exp", inf, -inf, nan, -0.0, 800.0, -800.0)) == "[inf, 0.0, nan, 1.0, inf, 0.0]"
    assert str(values("exp2", inf, -inf, nan, 0.0, 1100.0, -1100.0)) == "[inf, 0.0, nan, 1.0, inf, 0.0]"
    assert str(values("expm1", inf, -inf, nan, -0.0, 800.0, -800.0)) == "[inf, -1.0, nan, -0.0, inf, -1.0]"
    for name in ("log", "log2", "log10"):
        assert str(values(name, inf, -inf, nan, 0.0, -0.0, -1.0)) == "[inf, nan, nan, -inf, -inf, nan]"
        assert values(name, 1.0) == [0.0]
    assert str(values("log1p", inf, -inf, nan, -0.0, -1.0, -2.0)) == "[inf, nan, nan, -0.0, -inf, nan]"
    assert str(values("atanh", 1.0, -1.0, nan, -0.0, 2.0, -inf)) == "[inf, -inf, nan, -0.0, nan, nan]"
    assert str(values("erfinv", 1.0, -1.0, nan, 0.0, 2.0, -inf)) == "[inf, -inf, nan, 0.0, nan, nan]"
    assert str(values("asin", -0.0, 0.0, nan, 1.5, -inf)) == "[-0.0, 0.0, nan, nan, nan]"
    assert str(values("acos", 1.0, nan, 1.5, -inf)) == "[0.0, nan, nan, nan]"
    assert (
        str(values("entr", 1.0, 0.0, -0.0, -1.0, inf, -inf, nan)) == "[-0.0, 0.0, 0.0, -inf, -inf, -inf, nan]"
    )
    assert str(values("lgamma", 1.0, 2.0, 0.0, -3.0, inf, -inf, nan)) == "[0.0, 0.0, inf, inf, inf, inf, nan]"
    assert str(values("erf", inf, -inf, nan, -0.0, 10.0, -large)) == "[1.0, -1.0, nan, -0.0, 1.0, -1.0]"
    for name in ("sin", "tan"):
        assert str(values(name, inf, -inf, nan, 0.0, -0.0)) == "[nan, nan, nan, 0.0, -0.0]"
    assert str(values("cos", inf, -inf, nan, 0.0, -0.0)) == "[nan, nan, nan, 1.0, 1.0]"
    assert str(values("sqrt", inf, -inf, nan, 0.0, -0.0, -1.0)) == "[inf, nan, nan, 0.0, -0.0, nan]"
    assert str(values("logit", 0.0, 1.0, nan, 2.0, -1.0, 0.5)) == "[-inf, inf, nan, nan, nan, 0.0]"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_square_roots_are_rounded_correctly(dtype):
    random, unsigned = np.random.default_rng(1), {"float32": "uint32", "float64": "uint64"}[dtype]
    numbers = random.integers(0, np.array(inf, dtype).view(unsigned), 200000).astype(unsigned).view(dtype)
    squares = np.square(np.arange(1, 4000).astype(dtype))  # and what lies beside them
    x = np.concatenate(
        [numbers, squares, np.nextafter(squares, 0 * squares), np.nextafter(squares, 9 * squares)]
    )
    assert bits(torch.from_numpy(x).sqrt().numpy()) == bits(np.sqrt(x))


def test_logarithms_of_powers_of_two_are_whole():
    powers = np.arange(-1074, 1024)
    assert torch.from_numpy(np.ldexp(1.0, powers)).log2().tolist() == powers.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_within_a_few_units_in_the_last_place(dtype):
    mpmath = pytest.importorskip("mpmath")
    random = np.random.default_rng(2)
    ranges = {"exp": (-80, 80), "sin": (-40, 40), "cos": (-40, 40), "tan": (-40, 40), "erf": (-4, 4)}
    for name in (
        "exp",
        "log",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "erf",
        "erfinv",
        "log1p",
    ):
        low, high = ranges.get(name, (0.001, 0.999))
        x = random.uniform(low, high, 400).astype(dtype)
        if name.startswith("log") and name != "log1p":
            x *= np.exp2(random.integers(-3, 4, x.shape)).astype(dtype)
        exact = {"log2": lambda v: mpmath.log(v, 2), "log10": mpmath.log10}.get(name) or getattr(mpmath, name)
        with mpmath.workdps(40):
            for argument, value in zip(x.tolist(), FUNCTIONS[name](torch.from_numpy(x)).tolist()):
                truth = exact(mpmath.mpf(argument))
                unit = math.ldexp(1.0, math.frexp(float(truth))[1] - (24 if dtype == "float32" else 53))
                assert abs(truth - value) <= 2.5 * unit, (name, argument, value)
