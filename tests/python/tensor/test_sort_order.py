"""Which of several equal elements sort, argsort, mode, median and unique name: as PyTorch."""

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")


def pair_of(values):
    return rushlight.from_numpy(values.copy()), torch.from_numpy(values.copy())


DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64")


def pair(values, dtype):
    return tuple(m.tensor(values.tolist()).to(getattr(m, dtype)) for m in (rushlight, torch))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(9,), (40,), (3000,), (6, 70)])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_orders_equal_elements_as_pytorch(dtype, shape, descending):
    ours, theirs = pair(np.random.RandomState(0).randint(0, 2 if dtype == "bool" else 7, shape), dtype)
    for dim in range(len(shape)):
        for stable in (None, False, True):
            got = ours.sort(dim=dim, descending=descending, stable=stable)[1]
            assert got.tolist() == theirs.sort(dim=dim, descending=descending, stable=stable)[1].tolist()
        assert ours.argsort(dim, descending).tolist() == theirs.argsort(dim, descending).tolist()
        stable = ours.argsort(dim=dim, descending=descending, stable=True)
        assert stable.tolist() == theirs.argsort(dim=dim, descending=descending, stable=True).tolist()


EXTREMES = {
    "int64": [-(2**63), 2**63 - 1, -(2**63), 0, -1, 2**63 - 1, 1],
    "int32": [-(2**31), 2**31 - 1, -(2**31), 0, -1, 2**31 - 1, 1],
    "float32": [np.nan, np.inf, -np.inf, -0.0, 0.0, np.nan, 1e-45],
    "float64": [np.nan, np.inf, -np.inf, -0.0, 0.0, np.nan, 5e-324],
}


@pytest.mark.parametrize("dtype", EXTREMES)
@pytest.mark.parametrize("length", range(2, 18))
def test_short_lines_of_extremes(dtype, length):
    values = np.random.RandomState(8).choice(np.array(EXTREMES[dtype], dtype), (5, length))
    for ours, theirs in zip(*((t, t.T.contiguous().T) for t in pair_of(values)), strict=True):
        for descending in (False, True):
            got, expected = (t.sort(1, descending) for t in (ours, theirs))
            assert got[1].tolist() == expected[1].tolist()
            assert got[0].numpy().tobytes() == expected[0].numpy().tobytes()  # zeros keep their signs


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_long_vectors(dtype):
    ours, theirs = pair(np.random.RandomState(1).randint(0, 500, 40000), dtype)
    for descending in (False, True):
        got, expected = (t.sort(descending=descending)[1].tolist() for t in (ours, theirs))
        assert got == expected


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
@pytest.mark.parametrize("name", ["mode", "median", "nanmedian"])
def test_selections_name_the_same_element(name, dtype):
    rng = np.random.RandomState(2)
    if name != "mode" and dtype == "bool":
        dtype = "uint8"
    for length in (1, 2, 5, 30, 400, 5000):
        ours, theirs = pair(rng.randint(0, 2 if dtype == "bool" else 5, (8, length)), dtype)
        if name == "nanmedian" and dtype == "float32" and length > 2:
            ours[:, 1], theirs[:, 1] = float("nan"), float("nan")
        got, expected = (getattr(t, name)(-1) for t in (ours, theirs))
        assert got[0].tolist() == expected[0].tolist()
        assert got[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64"])
@pytest.mark.parametrize("kind", ["random", "rising", "two", "one", "nan"])
def test_medians_of_long_lines(kind, dtype):
    rng = np.random.default_rng(5)
    values = {
        "random": rng.normal(size=6001) * 1000,
        "rising": np.arange(6001.0),
        "two": np.where(np.arange(6001) % 256 < 200, -1.0, 1.0),  # of which a sample shows but one
        "one": np.full(6001, 3.0),
        "nan": np.where(rng.random(6001) < 0.9, np.nan, rng.normal(size=6001)),
    }[kind]
    if kind == "nan" and dtype == "int64":
        values = np.nan_to_num(values, nan=7.0)
    ours, theirs = pair(values, dtype)
    for name in ("median", "nanmedian"):
        got, expected = (getattr(t, name)(0) for t in (ours, theirs))
        assert repr(got[0].item()) == repr(expected[0].item())
        assert got[1].item() == expected[1].item()


@pytest.mark.parametrize("spread", [5, 2**31, 2**32 - 1, 2**32, 2**62])
def test_whole_numbers_around_a_range_of_32_bits(spread):
    random = np.random.default_rng(6)
    for low in (-(2**62), -3, 2**40):
        values = random.integers(low, low + spread, (3, 90), endpoint=True)
        values[:, 4], values[:, 50] = low, low + spread
        ours, theirs = rushlight.from_numpy(values), torch.from_numpy(values)
        for descending in (False, True):
            for got, expected in zip(ours.sort(1, descending), theirs.sort(1, descending), strict=True):
                assert got.tolist() == expected.tolist()
            for k in (1, 5, 40):
                for in_order in (False, True):
                    got, expected = (t.topk(k, 1, descending, in_order) for t in (ours, theirs))
                    assert got[0].tolist() == expected[0].tolist()
                    assert got[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_running_extremes_of_whole_numbers(rows):
    ours, theirs = pair(np.random.RandomState(7).randint(0, 3, (rows, 37)), "int64")
    for name in ("cummax", "cummin"):
        got, expected = (getattr(t, name)(1) for t in (ours, theirs))
        assert got[0].tolist() == expected[0].tolist() and got[1].tolist() == expected[1].tolist()


def test_unique_slices_of_the_last_dimension_are_ordered_by_all_others():
    ours, theirs = pair(np.random.RandomState(3).randint(0, 2, (4, 3, 5)), "int64")
    for dim in range(3):
        got = ours.unique(dim=dim, return_inverse=True, return_counts=True)
        expected = theirs.unique(dim=dim, return_inverse=True, return_counts=True)
        assert [g.tolist() for g in got] == [e.tolist() for e in expected]


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 7, 60, 300])
def test_topk_names_the_same_of_equal_elements(largest, k):
    for levels in (50, 1000, 1 << 20):
        ours, theirs = pair(np.random.RandomState(4).randint(0, levels, 5000), "float32")
        got, expected = (t.topk(k, largest=largest) for t in (ours, theirs))
        assert got[0].tolist() == expected[0].tolist() and got[1].tolist() == expected[1].tolist()


def test_expanded_lines_stay_as_they_are():
    ours, theirs = (m.tensor([3.0]).expand(23).sort(descending=True)[1].tolist() for m in (rushlight, torch))
    assert ours == theirs


def test_sets_with_nan_still_hold_infinity():
    nan, inf = float("nan"), float("inf")
    x = rushlight.tensor([nan, 1.0, inf, -inf, 0.25])
    assert rushlight.isin(x, rushlight.tensor([nan, -2.0, inf, 0.25, nan])).tolist() == [0, 0, 1, 0, 1]
    assert rushlight.isin(x, rushlight.tensor([nan])).tolist() == [False] * 5
    assert rushlight.isin(x, rushlight.tensor([nan]), invert=True).tolist() == [True] * 5


def test_distinct_values_do_not_drop_a_gradient():
    x = rushlight.tensor([1.0, 2.0, 1.0], requires_grad=True)
    for values in (rushlight.unique(x), rushlight.unique(x, dim=0), rushlight.unique_consecutive(x)):
        assert values.requires_grad
        with pytest.raises(NotImplementedError, match="unique.*is not implemented"):
            values.sum().backward()
    _, inverse, counts = rushlight.unique(x, return_inverse=True, return_counts=True)
    assert not inverse.requires_grad and counts.tolist() == [2, 1]


@pytest.mark.parametrize("name", ["median", "nanmedian", "mode", "kthvalue"])
@pytest.mark.parametrize("shape", [(1,), (3, 1), (2, 3)])
def test_complex_lines_are_refused_whatever_their_length(name, shape):
    args = (1,) if name == "kthvalue" else ()
    for m in (rushlight, torch):
        with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
            getattr(m, name)(m.ones(shape, dtype=m.complex64), *args)


def test_median_of_no_complex_numbers_is_nan():
    mine, theirs = (m.median(m.ones(0, dtype=m.complex64)) for m in (rushlight, torch))
    assert mine.real.isnan().item() and theirs.real.isnan().item() and mine.imag.item() == theirs.imag.item()
