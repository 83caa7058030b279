"""x[index] and x[index] = value against NumPy."""

import numpy as np
import pytest

import rushlight as rl

ARRAY = np.arange(24.0).reshape(2, 3, 4)
BASIC = [
    0,
    -1,
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(2, 0, -1),
    slice(5, 1),
    None,
    Ellipsis,
    (),
    (0, 1, 2),
    (slice(None), 1),
    (Ellipsis, 0),
    (0, Ellipsis, 1),
    (None, 0, None),
    (slice(None), slice(None, None, 2), slice(None, None, -2)),
    (Ellipsis, None),
    (1, slice(0, 0)),
    (0, Ellipsis),
]
ADVANCED = [
    [0, 1, 1],
    [1],
    (slice(None), [0, 2]),
    ([0, 1], [2, 0]),
    ([0, 1], slice(None), [3, 1]),
    (0, [1, 2]),
    ([[0], [1]], [0, 2]),
    (Ellipsis, [0, 0, 3]),
    (np.array([True, False]),),
    (slice(None), np.array([True, False, True])),
    (None, [1, 0]),
    np.array([1, 0]),
    ARRAY > 10,
    (slice(None), [-1]),
    (slice(None, None, -1), [0, 1]),
]


def to_rl(index):
    if isinstance(index, np.ndarray):
        return rl.tensor(index.tolist())
    return tuple(map(to_rl, index)) if isinstance(index, tuple) else index


@pytest.mark.parametrize("index", BASIC, ids=str)
def test_basic_indices_are_views(index):
    x = rl.tensor(ARRAY.tolist())
    got = x[index]
    assert got.tolist() == ARRAY[index].tolist()
    assert got.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@pytest.mark.parametrize("index", ADVANCED, ids=lambda i: str(i).replace("\n", ""))
def test_advanced_indices(index):
    assert rl.tensor(ARRAY.tolist())[to_rl(index)].tolist() == ARRAY[index].tolist()


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=lambda i: str(i).replace("\n", ""))
def test_assignment(index):
    x, expected = rl.tensor(ARRAY.tolist()), ARRAY.copy()
    x[to_rl(index)] = -5
    expected[index] = -5
    assert x.tolist() == expected.tolist()


def test_assignment_broadcasts_and_casts():
    x = rl.zeros(2, 3)
    x[:, 1] = rl.tensor([1, 2])
    x[0] = rl.ones(1, 3)
    assert x.tolist() == [[1.0, 1.0, 1.0], [0.0, 2.0, 0.0]]


@pytest.mark.parametrize("grad", [False, True])
def test_gradients_flow_through_indexing(grad):
    x = rl.arange(6.0).reshape(2, 3).requires_grad_(grad)
    if not grad:
        assert x[0, 1:].grad_fn is None
        return
    y = x[1, ::2]
    assert type(y.grad_fn).__name__ == "SliceBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]


def test_assignment_under_autograd():
    v = rl.tensor(3.0, requires_grad=True)
    x = rl.zeros(3)
    x[1] = v
    (x * 2).sum().backward()
    assert x.requires_grad and v.grad.item() == 2.0


@pytest.mark.parametrize(
    "index, error, text",
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, 7), IndexError, "index 7 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (1.5, IndexError, "only integers, slices"),
        ("a", TypeError, "invalid data type 'str'"),
        (slice(0, 2, 0), ValueError, "slice step cannot be zero"),
        ({}, IndexError, "only integers, slices"),
        ([0, 5], IndexError, "out of bounds"),
    ],
)
def test_bad_indices(index, error, text):
    with pytest.raises(error, match=text):
        rl.zeros(2, 3, 4)[index]


def test_zero_dim():
    x = rl.tensor(3.0)
    assert x[None].shape == (1,) and x[...].item() == 3.0
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        x[0]
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(x)
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(x)


def test_assigning_another_type_by_index_is_refused(torch):
    def program(m, write):
        x = m.zeros(3, 2, dtype=m.int64)
        try:
            write(m, x)
        except RuntimeError as error:
            return str(error)
        return x.tolist()

    def by_rows(m, x):
        x[m.tensor([0, 2])] = m.tensor([[0.5, 1.5]])

    def by_column(m, x):
        x[0, m.tensor([1])] = m.tensor(2.5)

    def by_mask(m, x):
        x[x == 0] = m.tensor(2.5)

    def by_number(m, x):
        x[m.tensor([1])] = 2.5

    for write in (by_rows, by_column, by_mask, by_number):
        ours, theirs = program(rl, write), program(torch, write)
        assert ours == theirs, (write.__name__, ours, theirs)


@pytest.mark.parametrize("index", [slice(None), ..., (), (slice(None), slice(None))], ids=str)
def test_all_of_a_tensor_is_a_view_of_it(index):
    leaf = rl.ones(2, 3, requires_grad=True)
    for x in (rl.ones(2, 3), leaf, leaf * 2):
        view = x[index]
        assert view is not x and view._base is x and view.data_ptr() == x.data_ptr()
