"""Any index means what it means to NumPy: values, aliasing, assignment and accumulation.

One rule is PyTorch's: an int beside index arrays is taken first and does not count as an array, so that
``x[0, :, [1, 2]]`` keeps its axes in order.
"""

import numpy as np
import pytest

import rushlight as rl

hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")

BOUNDED = hypothesis.settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)


def slices(size):
    ends = st.none() | st.integers(-size - 2, size + 2)
    return st.builds(slice, ends, ends, st.sampled_from([None, 1, 2, -1, -2, 3, -3]))


@st.composite
def basic_items(draw, shape):
    """An index of ints, slices and None for some of the dimensions."""
    items = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if draw(st.integers(0, 5)) == 0:
            items.append(None)
        items.append(draw(slices(size) | (st.integers(-size, size - 1) if size else slices(size))))
    return items


@st.composite
def advanced_items(draw, shape):
    """Index arrays that broadcast, masks, slices and None."""
    items, dim = [], 0
    common = draw(st.sampled_from([(3,), (2, 3), (1,), ()]))
    width = draw(st.integers(1, len(shape)))
    while dim < width:
        size = shape[dim]
        kind = draw(st.sampled_from(["array", "array", "slice", "mask", "wide mask", "none"]))
        if kind == "none":
            items.append(None)
            continue
        if kind == "wide mask" and dim + 2 <= len(shape):
            items.append(draw(masks(shape[dim : dim + 2])))
            dim += 1
        elif kind == "mask":
            items.append(draw(masks((size,))))
        elif kind == "array" and size:
            cut = draw(st.integers(0, len(common)))
            values = st.integers(-size, size - 1)
            count = int(np.prod(common[cut:]))
            drawn = draw(st.lists(values, min_size=count, max_size=count))
            items.append(np.array(drawn, dtype=np.int64).reshape(common[cut:]))
        else:
            items.append(draw(slices(size)))
        dim += 1
    return items


def masks(shape):
    count = int(np.prod(shape))
    return st.lists(st.booleans(), min_size=count, max_size=count).map(
        lambda v: np.array(v, dtype=bool).reshape(shape)
    )


@st.composite
def cases(draw, items):
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    index = draw(items(shape))
    # An ellipsis may stand wherever no dimension is skipped: at the end, for those not named.
    if draw(st.booleans()):
        index = [*index, Ellipsis]
    return shape, tuple(index)


def filled(shape):
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


def ours(index):
    # An index array without dimensions is an int to PyTorch: give it one where NumPy cannot tell.
    return tuple(rl.from_numpy(i) if isinstance(i, np.ndarray) else i for i in index)


def theirs(index):
    return tuple(
        int(i) if isinstance(i, np.ndarray) and i.ndim == 0 and i.dtype != bool else i for i in index
    )


def outcome(call):
    try:
        return call()
    except (IndexError, ValueError, RuntimeError) as error:
        return error


def mixes_ints_and_arrays(index):
    dims = [i.ndim for i in index if isinstance(i, np.ndarray)]
    return 0 in dims and any(dims)


def check_same(mine, expected):
    if isinstance(expected, Exception):
        assert isinstance(mine, Exception), expected
        return
    assert not isinstance(mine, Exception), mine
    assert tuple(mine.shape) == expected.shape
    np.testing.assert_array_equal(mine.numpy(), expected)


@BOUNDED
@hypothesis.given(cases(basic_items))
def test_basic_reads_and_writes(case):
    shape, index = case
    x = filled(shape)
    t = rl.from_numpy(x.copy())
    view, expected = t[index], x[index]
    check_same(view, np.asarray(expected))
    # A view is a view: what is written to it is in the base.
    view.fill_(-1)
    x[index] = -1
    np.testing.assert_array_equal(t.numpy(), x)


@BOUNDED
@hypothesis.given(cases(advanced_items))
def test_advanced_reads(case):
    shape, index = case
    hypothesis.assume(not mixes_ints_and_arrays(index))
    x = filled(shape)
    check_same(outcome(lambda: rl.from_numpy(x)[ours(index)]), outcome(lambda: np.asarray(x[theirs(index)])))


@BOUNDED
@hypothesis.given(cases(advanced_items), st.booleans())
def test_advanced_writes(case, scalar):
    shape, index = case
    hypothesis.assume(not mixes_ints_and_arrays(index))
    x = filled(shape)
    t = rl.from_numpy(x.copy())
    selected = outcome(lambda: np.asarray(x[theirs(index)]))
    if isinstance(selected, Exception):
        assert isinstance(outcome(lambda: t[ours(index)]), Exception)
        return
    # Where elements are written twice the order is open, so equal values go to equal places.
    value = np.float64(-7.0) if scalar else -selected - 1
    x[theirs(index)] = value
    t[ours(index)] = float(value) if scalar else rl.from_numpy(np.ascontiguousarray(value))
    np.testing.assert_array_equal(t.numpy(), x)


@BOUNDED
@hypothesis.given(cases(advanced_items))
def test_accumulation(case):
    shape, index = case
    arrays = [i for i in index if isinstance(i, np.ndarray)]
    if len(arrays) != len(index) or not arrays or any(i.ndim == 0 for i in arrays):
        return  # index_put_ takes arrays only
    x = filled(shape)
    t = rl.from_numpy(x.copy())
    if isinstance(outcome(lambda: x[index]), Exception):
        return
    value = filled(x[index].shape) + 1
    np.add.at(x, index, value)
    t.index_put_(ours(index), rl.from_numpy(value), accumulate=True)
    np.testing.assert_array_equal(t.numpy(), x)


@pytest.mark.parametrize(
    "index",
    [
        (Ellipsis, [0, 1]),
        ([0, 2], Ellipsis, [1, 1]),
        ([[0], [2]], None, [1, 0]),
        (slice(None, None, -1), [True, False, True]),
        (None, [1], slice(1, None), None),
        ([], slice(None)),
        (np.array([2, 0]), slice(None, None, -2), np.array([[1], [3]])),
    ],
    ids=str,
)
def test_lists_and_arrays_as_they_are(index):
    x = filled((3, 3, 4))
    check_same(rl.from_numpy(x)[index], x[index])


def test_gradients_reach_what_was_taken():
    x = filled((3, 4))
    for index in (
        (slice(None, None, -2), [0, 0, 3]),
        ([True, False, True],),
        (None, 1, slice(None, None, -1)),
    ):
        t = rl.from_numpy(x.copy()).requires_grad_()
        t[index].sum().backward()
        counts = np.zeros_like(x)
        np.add.at(counts, tuple(np.array(i) if isinstance(i, list) else i for i in index), 1)
        np.testing.assert_array_equal(t.grad.numpy(), counts)
