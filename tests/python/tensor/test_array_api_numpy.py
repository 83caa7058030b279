"""rushlight.array_api against NumPy 2, which follows the same standard: values, dtypes and shapes."""

import itertools

import numpy as np
import pytest

import rushlight as rl

if int(np.__version__.split(".")[0]) < 2:
    pytest.skip("NumPy follows the standard from version 2 on", allow_module_level=True)

xp = rl.array_api
RNG = np.random.default_rng(11)
SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
REAL, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
NUMERIC = SIGNED + UNSIGNED + REAL + COMPLEX
EVERY = ("bool", *NUMERIC)
SHAPES = ((), (3,), (2, 3), (2, 0, 3))


def data(dtype, shape, low=-4, high=5):
    low = max(low, 0) if dtype.startswith(("u", "b")) else low
    values = RNG.integers(low, 2 if dtype == "bool" else high, shape)
    if dtype in REAL + COMPLEX:
        values = values + RNG.integers(0, 4, shape) / 4
    if dtype in COMPLEX:
        values = values + 1j * RNG.integers(-3, 4, shape)
    return np.asarray(values).astype(dtype)


def tensor(a):
    return rl.from_numpy(a) if isinstance(a, np.ndarray) else a


def check(name, mine, expected, rtol=2e-5):
    expected = np.asarray(expected)
    assert str(mine.dtype).removeprefix("torch.") == str(expected.dtype), name
    assert tuple(mine.shape) == expected.shape, name
    np.testing.assert_allclose(mine.numpy(), expected, rtol=rtol, atol=rtol, err_msg=name)


def both(name, args, kwargs=None):
    kwargs = kwargs or {}
    mine, theirs = xp, np
    for part in name.split("."):
        mine, theirs = getattr(mine, part), getattr(theirs, part)
    with np.errstate(all="ignore"):
        expected = theirs(*args, **kwargs)
    options = {key: tensor(value) for key, value in kwargs.items()}
    check(f"{name} {args} {kwargs}", mine(*map(tensor, args), **options), expected)


UNARY = {
    EVERY: "isfinite isinf isnan",
    NUMERIC: "abs negative positive sign square conj real imag",
    SIGNED + UNSIGNED + REAL: "ceil floor trunc round",
    REAL + COMPLEX: "sin cos tan sinh cosh tanh exp expm1 log log1p log2 log10 sqrt asinh acosh atan acos",
    REAL: "signbit reciprocal",
    ("bool",): "logical_not",
    ("bool", *SIGNED, *UNSIGNED): "bitwise_invert",
}


@pytest.mark.parametrize(
    "dtypes, names", UNARY.items(), ids=lambda v: v.split()[0] if isinstance(v, str) else ""
)
def test_unary(dtypes, names):
    for name, dtype, shape in itertools.product(names.split(), dtypes, SHAPES):
        low = 1 if name in ("log", "log1p", "log2", "log10", "acosh", "reciprocal", "sqrt") else -4
        x = data(dtype, shape, low)
        both(name, (np.asarray(x / 8, dtype) if name == "acos" else x,))


BINARY = {
    EVERY: "equal not_equal",
    NUMERIC: "add subtract multiply",
    SIGNED + UNSIGNED + REAL: "less less_equal greater greater_equal maximum minimum floor_divide remainder",
    REAL + COMPLEX: "divide",
    REAL: "atan2 copysign hypot logaddexp nextafter",
    ("bool",): "logical_and logical_or logical_xor",
    ("bool", *SIGNED, *UNSIGNED): "bitwise_and bitwise_or bitwise_xor",
}


@pytest.mark.parametrize(
    "dtypes, names", BINARY.items(), ids=lambda v: v.split()[0] if isinstance(v, str) else ""
)
def test_binary(dtypes, names):
    for name, dtype in itertools.product(names.split(), dtypes):
        low = 1 if name in ("floor_divide", "remainder", "divide") else -4
        for left, right in (((2, 3), (2, 3)), ((2, 1), (3,)), ((), (3,)), ((0, 3), (1, 3))):
            both(name, (data(dtype, left), data(dtype, right, low)))


def test_promotion():
    groups = (SIGNED, UNSIGNED, ("int64", "int32", "uint8", "uint16", "uint32"), REAL + COMPLEX)
    for one, other in itertools.chain(*(itertools.product(g, g) for g in groups)):
        for left, right in (((3,), ()), ((), (3,)), ((2,), (2,))):
            both("add", (data(one, left, 0), data(other, right, 0)))
        assert xp.can_cast(getattr(xp, one), getattr(xp, other)) == np.can_cast(one, other)


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "count_nonzero"]
)
def test_reductions(name):
    dtypes = {"any": EVERY, "all": EVERY, "count_nonzero": EVERY, "sum": NUMERIC, "prod": NUMERIC}
    dtypes |= {"max": SIGNED + UNSIGNED + REAL, "min": SIGNED + UNSIGNED + REAL}
    for dtype in dtypes.get(name, REAL):
        x = data(dtype, (2, 3, 2), -2, 3)
        for axis, keepdims in itertools.product((None, 0, -1, (0, 2), ()), (False, True)):
            both(name, (x,), {"axis": axis, "keepdims": keepdims})
        both(name, (data(dtype, ()),))
    if name in ("std", "var"):
        both(name, (x,), {"axis": 1, "correction": 1})


def test_running_sums_and_differences():
    for dtype, initial in itertools.product(NUMERIC, (False, True)):
        x = data(dtype, (2, 3), 0, 3)
        both("cumulative_sum", (x,), {"axis": 1, "include_initial": initial})
        both("cumulative_prod", (x,), {"axis": 0, "include_initial": initial})
    for dtype in ("int64", "float32", "complex64"):
        both("diff", (data(dtype, (2, 4)),), {"n": 2})
        both("diff", (data(dtype, (3, 2)),), {"axis": 0, "prepend": data(dtype, (1, 2))})


def test_searching_and_sorting():
    for dtype in SIGNED + UNSIGNED + REAL:
        x = data(dtype, (3, 4))
        for axis, descending in itertools.product((0, -1), (False, True)):
            expected = np.sort(x, axis=axis)
            expected = np.flip(expected, axis) if descending else expected
            check("sort", xp.sort(tensor(x), axis=axis, descending=descending), expected)
            order = xp.argsort(tensor(x), axis=axis, descending=descending)
            check("argsort", xp.take_along_axis(tensor(x), order, axis=axis), expected)
        for name, axis, keepdims in itertools.product(("argmax", "argmin"), (None, 0, 1), (False, True)):
            both(name, (x,), {"axis": axis, "keepdims": keepdims})
        line = np.sort(x.reshape(-1))
        for side in ("left", "right"):
            both("searchsorted", (line, x), {"side": side})
        both("take", (x, np.array([2, 0, -1])), {"axis": 0})
        both("where", (x > 0, x, data(dtype, (4,))))
    for mine, expected in zip(xp.nonzero(tensor(x)), np.nonzero(x), strict=True):
        check("nonzero", mine, expected)


def test_sets():
    for dtype, shape in itertools.product(EVERY, ((7,), (2, 3), (), (0,))):
        x = data(dtype, shape, -1, 2)
        for name in ("unique_all", "unique_counts", "unique_inverse"):
            for mine, expected in zip(getattr(xp, name)(tensor(x)), getattr(np, name)(x), strict=True):
                check(f"{name} {x}", mine, expected)
        check("unique_values", xp.unique_values(tensor(x)), np.sort(np.unique_values(x)))
    apart = xp.unique_all(rl.tensor([float("nan"), 1.0, float("nan")]))
    assert apart.counts.tolist() == [1, 1, 1] and apart.values.shape == (3,)


def test_shapes():
    for dtype in ("bool", "int16", "uint32", "float64", "complex64"):
        x, y = data(dtype, (2, 3)), data(dtype, (1, 3))
        check("concat", xp.concat([tensor(x), tensor(y)]), np.concat([x, y]))
        check("stack", xp.stack([tensor(x), tensor(x)], axis=-1), np.stack([x, x], axis=-1))
        both("expand_dims", (x,), {"axis": 1})
        both("flip", (x,))
        both("flip", (x,), {"axis": (0, -1)})
        both("moveaxis", (x, 0, -1))
        both("permute_dims", (x, (1, 0)))
        both("reshape", (x, (3, -1)))
        both("squeeze", (y,), {"axis": 0})
        both("tile", (x, (2, 1, 2)))
        both("broadcast_to", (y, (4, 3)))
        both("matrix_transpose", (x,))
        for shift, axis in ((1, None), (-2, 1), ((1, 2), (0, 1)), (1, (0, 1))):
            both("roll", (x, shift), {"axis": axis})
        for repeats, axis in ((2, None), (2, 1), (np.array([1, 0, 2], dtype=np.int8), 1)):
            both("repeat", (x, repeats), {"axis": axis})
    both("roll", (data("bool", ()), 1))
    for mine, expected in zip(
        xp.meshgrid(xp.arange(2), xp.arange(3)), np.meshgrid(range(2), range(3)), strict=True
    ):
        check("meshgrid", mine, expected)


def test_creation():
    both("arange", (2, 9, 3))
    for k, (rows, columns) in itertools.product((-5, -1, 0, 2, 7), ((3, 3), (2, 0), (2, 4))):
        check("eye", xp.eye(rows, columns, k=k, dtype=xp.float64), np.eye(rows, columns, k=k))
        both("tril", (data("int32", (rows, columns)),), {"k": k})
    for endpoint, n in itertools.product((True, False), (0, 1, 5)):
        check(
            "linspace",
            xp.linspace(-1.0, 2.0, n, dtype=xp.float64, endpoint=endpoint),
            np.linspace(-1.0, 2.0, n, endpoint=endpoint),
        )


def test_products_and_linear_algebra():
    for dtype in ("float32", "float64", "complex128"):
        a, b = data(dtype, (2, 3, 3)), data(dtype, (2, 3, 3))
        a = a + (9 * np.eye(3)).astype(dtype)
        both("matmul", (a, b))
        both("vecdot", (a, b))
        both("tensordot", (a, b), {"axes": ((2,), (1,))})
        for name in ("inv", "det", "diagonal", "trace", "svdvals", "matrix_norm", "matrix_rank", "pinv"):
            both(f"linalg.{name}", (a,))
        both("linalg.matrix_power", (a, 3))
        both("linalg.outer", (a[0, 0].copy(), b[0, 1].copy()))
        both("linalg.cross", (a, b))
        both("linalg.solve", (a, b))
        for order, axis in itertools.product((0, 1, 2, float("inf")), (None, 0, (1, 2))):
            if not isinstance(axis, tuple) or order == 2:
                both("linalg.vector_norm", (a,), {"ord": order, "axis": axis})
    for dtype in ("int8", "uint16", "int64"):
        both("matmul", (data(dtype, (2, 3)), data(dtype, (3, 2))))
        both("vecdot", (data(dtype, (2, 3)), data(dtype, (2, 3))))
        both("linalg.trace", (data(dtype, (3, 3)),))


def test_fourier():
    x = data("complex128", (4, 6))
    for name, norm in itertools.product(("fft", "ifft", "hfft", "irfft"), ("backward", "ortho", "forward")):
        both(f"fft.{name}", (x,), {"n": 5, "axis": 0, "norm": norm})
    for name in ("fftn", "ifftn", "irfftn"):
        both(f"fft.{name}", (x,), {"s": (3, 5), "axes": (0, 1)})
    for name in ("rfft", "ihfft", "rfftn"):
        both(f"fft.{name}", (x.real.copy(),))
    both("fft.fftshift", (x,), {"axes": 1})


def test_clip():
    x = data("int32", (2, 3))
    for low, high in ((0, None), (None, 2), (-1, 1), (data("int32", (3,)), 3)):
        check("clip", xp.clip(tensor(x), tensor(low), tensor(high)), np.clip(x, low, high))


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 0.5, 1e300, -1e300])


def check_special(name, mine, expected):
    np.testing.assert_array_equal(mine.isnan().numpy(), np.isnan(expected), err_msg=name)
    np.testing.assert_allclose(mine.numpy(), expected, rtol=1e-12, err_msg=name)
    there = ~np.isnan(expected)
    if expected.dtype.kind == "f":
        np.testing.assert_array_equal(
            np.signbit(mine.numpy())[there], np.signbit(expected)[there], err_msg=f"{name}: signs of zero"
        )


def test_special_values():
    """Infinities, NaN and both zeros, one by one and in pairs."""
    unary = (
        "abs sign square ceil floor trunc round exp expm1 log log1p log2 log10 sqrt sin cos tan sinh cosh "
        "tanh asin acos atan asinh acosh atanh reciprocal signbit isfinite"
    )
    binary = (
        "add multiply subtract divide pow atan2 copysign hypot logaddexp maximum minimum floor_divide "
        "remainder nextafter less equal"
    )
    left, right = (np.ascontiguousarray(a) for a in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        for name in unary.split():
            check_special(name, getattr(xp, name)(rl.from_numpy(SPECIAL)), getattr(np, name)(SPECIAL))
        for name in binary.split():
            mine = getattr(xp, name)(rl.from_numpy(left), rl.from_numpy(right))
            check_special(name, mine, getattr(np, name)(left, right))
