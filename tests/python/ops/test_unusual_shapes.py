"""Lines of one or few elements, narrow columns, repeated elements, functions outside of their domain."""

import math

import numpy as np
import pytest

import rushlight as rl

NAN, INF = float("nan"), float("inf")
ONES = ["max", "min", "sort", "median", "mode", "cummax", "cummin"]


def numbers(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype("float32")
    return np.where(np.abs(values) < 0.1, np.float32(0), np.round(values, 1))


@pytest.mark.parametrize("dim", [0, 2])
@pytest.mark.parametrize("name", ONES)
def test_lines_of_one_element_are_their_result(name, dim):
    x = rl.tensor([[[NAN], [-0.0], [INF], [2.5]]])
    values, indices = getattr(rl, name)(x, dim)
    assert values.numpy().tobytes() == x.numpy().tobytes()
    assert indices.dtype == rl.int64 and indices.flatten().tolist() == [0] * 4


def test_one_element_of_one_is_chosen():
    x = rl.tensor([[[3.0], [NAN], [-1.0]]])
    for values, indices in (rl.topk(x, 1, -1), rl.kthvalue(x, 1, -1, keepdim=True)):
        assert values.shape == x.shape and values.numpy().tobytes() == x.numpy().tobytes()
        assert not indices.any()
    assert rl.argmax(x, 2).tolist() == rl.argmin(x, 2).tolist() == [[0, 0, 0]]
    assert rl.topk(x, 0, -1).values.shape == (1, 3, 0)


def test_reductions_of_one_element():
    x = rl.tensor([[-3.0, 0.0, NAN, -INF]])
    assert rl.all(x, 0).tolist() == rl.any(x, 0).tolist() == [True, False, True, True]
    assert rl.all(x.to(rl.uint8), 0).dtype == rl.uint8
    for order in (1, 2, INF, -INF):
        norm = rl.linalg.vector_norm(x, order, 0).tolist()
        assert norm[:2] == [3, 0] and math.isnan(norm[2]) and norm[3] == INF


@pytest.mark.parametrize("n", range(1, 10))
@pytest.mark.parametrize("dim", [0, 1])
def test_short_lines_are_sorted_stably(n, dim):
    x = numbers(200, n)
    x[3, -1] = NAN
    lines = x if dim == 1 else np.ascontiguousarray(x.T)
    for descending in (False, True):
        values, indices = rl.sort(rl.from_numpy(lines), dim=dim, descending=descending, stable=True)
        values, indices = (t.numpy() if dim == 1 else t.numpy().T for t in (values, indices))
        for line, got, at in zip(x, values, indices, strict=True):
            key = [INF if math.isnan(v) else v for v in line]
            wanted = sorted(range(n), key=lambda i, key=key: -key[i] if descending else key[i])
            assert at.tolist() == wanted
            assert got.tobytes() == line[wanted].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("n", [2, 3, 16, 17])
def test_extremes_of_short_lines(n, dtype):
    x = (numbers(300, n, seed=n) * 3 + 9).astype(dtype)
    t = rl.from_numpy(x)
    assert rl.argmax(t, 1).tolist() == x.argmax(1).tolist()
    values, indices = t.min(1)
    assert indices.tolist() == x.argmin(1).tolist() and values.tolist() == x.min(1).tolist()


@pytest.mark.parametrize("width", [1, 2, 3, 7, 16, 17])
@pytest.mark.parametrize("rows", [1023, 1024, 1039, 70001])
def test_narrow_columns(width, rows):
    x = np.random.default_rng(rows).random((rows, width)).astype("float32")
    t = rl.from_numpy(x)
    np.testing.assert_allclose(rl.sum(t, 0).numpy(), x.astype("float64").sum(0), rtol=2e-6)
    np.testing.assert_allclose(rl.mean(t, 0).numpy(), x.astype("float64").mean(0), rtol=2e-6)
    np.testing.assert_allclose(rl.var(t, 0).numpy(), x.astype("float64").var(0, ddof=1), rtol=1e-5)
    assert rl.amax(t, 0).tolist() == x.max(0).tolist()
    assert rl.sum((t * 100).long(), 0).tolist() == (x * np.float32(100)).astype("int64").sum(0).tolist()
    threads = rl.get_num_threads()
    try:
        rl.set_num_threads(1)
        one = rl.sum(t, 0).numpy().tobytes()
    finally:
        rl.set_num_threads(threads)
    assert one == rl.sum(t, 0).numpy().tobytes()


@pytest.mark.parametrize("shape", [(50, 3), (50, 1), (7, 5, 2), (1, 40, 1), (30, 40)])
def test_moves_of_short_rows(shape):
    x = numbers(*shape, seed=1)
    t = rl.from_numpy(x)
    assert t.nonzero().tolist() == np.argwhere(x).tolist()
    assert t.mT.nonzero().tolist() == np.argwhere(np.swapaxes(x, -1, -2)).tolist()
    around = rl.nn.functional.pad(t, (1, 2, 1, 3), value=7.0).numpy()
    frame = [(0, 0)] * (x.ndim - 2) + [(1, 3), (1, 2)]
    assert around.tolist() == np.pad(x, frame, constant_values=7).tolist()
    cut = rl.nn.functional.pad(t, (0, 1, -1, 2)).numpy()
    frame = [(0, 0)] * (x.ndim - 2) + [(0, 2), (0, 1)]
    assert cut.tolist() == np.pad(x[..., 1:, :], frame).tolist()
    padded = rl.nn.functional.pad(t, (2, 1), value=7.0).numpy()
    wanted = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(2, 1)], constant_values=7)
    assert padded.tolist() == wanted.tolist()
    for dtype in ("float32", "float64", "int16"):
        y = x.astype(dtype)
        assert rl.roll(rl.from_numpy(y), 2, -1).tolist() == np.roll(y, 2, -1).tolist()
        assert rl.roll(rl.from_numpy(y), -1, 0).tolist() == np.roll(y, -1, 0).tolist()
    assert rl.triu(t, 1).tolist() == np.triu(x, 1).tolist()
    assert rl.tril(t, -1).tolist() == np.tril(x, -1).tolist()


@pytest.mark.parametrize("dim", range(4))
def test_images_roll_as_they_lie(dim):
    x = rl.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).contiguous(memory_format=rl.channels_last)
    rolled = rl.roll(x, 1, dim)
    assert rolled.tolist() == np.roll(x.numpy(), 1, dim).tolist()
    assert rolled.is_contiguous(memory_format=rl.channels_last)


def test_repeated_elements():
    x = rl.from_numpy(numbers(70, 1, 3))
    for t in (x.expand(70, 90, 3), x[:, :, :1].expand(70, 90, 3), x[:1].expand(700, 9, 3)):
        for f in (rl.exp, rl.relu, rl.isnan, lambda v: v.clamp(0, 1), lambda v: v**2):
            assert f(t).tolist() == f(t.contiguous()).tolist()
            assert f(t).stride() == f(t.contiguous()).stride()


CASES = [-INF, -1e30, -800.0, -150.0, -126.5, -90.0, -60.0, -1.0, -0.5, -1e-30, -0.0, 0.0, 1e-30, 0.5]
CASES += [1.0, 88.7, 89.0, 90.0, 127.9, 128.0, 709.5, 711.0, 1023.9, 1024.0, 1e30, INF, NAN]
FUNCTIONS = ["log1p", "expm1", "exp2", "sinh", "arctanh", "arccosh"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_outside_of_their_domain(name, dtype):
    x = np.array(CASES * 3, dtype)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x.astype("longdouble")).astype(dtype)
    got = getattr(rl, name)(rl.from_numpy(x)).numpy()
    smallest = np.finfo(dtype).smallest_subnormal
    np.testing.assert_allclose(got, wanted, rtol=4 * np.finfo(dtype).eps, atol=float(smallest))
    same = ~np.isnan(wanted) & (wanted == 0)
    assert (np.signbit(got) == np.signbit(wanted))[same].all()


def test_elu_of_positive_numbers_and_zeros():
    x = rl.tensor([-INF, -100.0, -1.0, -0.0, 0.0, 1e-30, 2.0, INF, NAN])
    got = rl.nn.functional.elu(x).tolist()
    assert got[:2] == [-1, -1] and got[2] == pytest.approx(math.expm1(-1)) and got[3:8] == x.tolist()[3:8]
    assert math.isnan(got[8])


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("n", [1, 255, 1000])
def test_adam_of_halves_is_that_of_floats_rounded(n, amsgrad, dtype):
    halves = [rl.from_numpy(np.abs(numbers(n, seed=seed)) + 0.1).to(dtype) for seed in range(5)]
    floats = [t.float() for t in halves]
    for parameter, gradient, *state in (halves, floats):
        rl._fused_adam_(
            [parameter],
            [gradient],
            [state[0]],
            [state[1]],
            [state[2]] if amsgrad else [],
            [rl.tensor(3.0)],
            lr=0.1,
            beta1=0.9,
            beta2=0.99,
            weight_decay=0.01,
            eps=1e-8,
            amsgrad=amsgrad,
            maximize=False,
        )
    for half, wide in zip(halves, floats, strict=True):
        assert half.tolist() == wide.to(dtype).tolist()


def test_bytes_of_one_element_are_truth_values_of_0_and_1():
    for x, dims in ((rl.tensor(6), (None, 0)), (rl.tensor([[6], [0]]), (1,)), (rl.tensor([6]), (None, 0))):
        x = x.to(rl.uint8)
        for f in (rl.all, rl.any):
            for dim in dims:
                result = f(x) if dim is None else f(x, dim)
                assert (
                    result.dtype == rl.uint8
                    and result.tolist() == (x != 0).to(rl.uint8).reshape_as(result).tolist()
                )
    assert rl.any(rl.tensor([6, 3], dtype=rl.uint8), dim=[]).tolist() == [1, 1]


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4), (5, 1), (1, 1, 6)])
def test_coordinates_of_a_dimension_lie_side_by_side(shape):
    x = rl.from_numpy(np.random.default_rng(0).random(shape) < 0.5)
    x[(0,) * len(shape)] = True
    found = rl.nonzero(x)
    assert found.stride() == (1, len(found))
    assert found.tolist() == np.argwhere(x.numpy()).tolist()
    assert all(column.is_contiguous() for column in rl.where(x))
    turned = x.permute(*reversed(range(x.dim())))
    assert rl.nonzero(turned).tolist() == np.argwhere(turned.numpy()).tolist()
