"""What other libraries hand over is read by position, never by label; Note [Data by position]."""

import array
import collections
import ctypes
import decimal
import fractions
import itertools
import sys

import numpy as np
import pytest

import rushlight as rl
from rushlight.utils.data import WeightedRandomSampler, default_collate, default_convert


class Labelled:
    """A series of a sort: [] asks by label, which differs from the position."""

    def __init__(self, values, labels):
        self.values, self.labels = np.asarray(values), list(labels)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, label):
        return self.values[self.labels.index(label)]

    def __iter__(self):
        return iter(self.values.tolist())

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


class Frame(Labelled):
    """A data frame of a sort: [] is a column, iteration yields names."""

    def __getitem__(self, label):
        return Labelled(self.values[:, self.labels.index(label)], range(len(self.values)))

    def __iter__(self):
        return iter(self.labels)


class Interface:
    def __init__(self, values):
        self.values = values

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


READERS = {
    "tensor": rl.tensor,
    "as_tensor": rl.as_tensor,
    "asarray": rl.asarray,
    "new_tensor": lambda data: rl.zeros(1).new_tensor(data),
    "Tensor": rl.Tensor,
    "FloatTensor": rl.FloatTensor,
    "DoubleTensor": rl.DoubleTensor,
    "new": lambda data: rl.zeros(1).new(data),
    "given dtype": lambda data: rl.tensor(data, dtype=rl.float64),
    "in a list": lambda data: rl.tensor([data])[0],
    "in a tuple": lambda data: rl.as_tensor((data, data))[1],
}
reading = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


@reading
@pytest.mark.parametrize("labels", [[0, 1, 2], [2, 1, 0], list("abc"), [5, 6, 7], [0, 0, 1]], ids=str)
def test_series(read, labels):
    assert read(Labelled([1.0, 2.0, 3.0], labels)).tolist() == [1, 2, 3]


@reading
@pytest.mark.parametrize("names", [[0, 1], list("ab"), [1, 0]], ids=str)
def test_frame(read, names):
    values = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert read(Frame(values, names)).tolist() == values


@reading
def test_array_interface_and_buffers(read):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert read(Interface(values)).tolist() == values.tolist()
    if read is not rl.asarray:  # takes the bytes of a buffer for a list of elements, as PyTorch says
        assert read(memoryview(values)).tolist() == values.tolist()
        assert read(array.array("d", [1, 2, 3])).tolist() == [1, 2, 3]


def test_dtypes_are_those_of_single_elements():
    as_numpy = Labelled([1, 2], [0, 1])
    assert rl.tensor(as_numpy).dtype == rl.int64
    assert rl.tensor(Labelled(np.array([1, 2], np.int16), [0, 1])).dtype == rl.int16
    assert rl.tensor(Labelled(np.array([1, 2], np.float64), "ab")).dtype == rl.float64

    class OfPython(Labelled):
        def __getitem__(self, i):
            return self.values[i].item()

    assert rl.tensor(OfPython(np.array([1, 2], np.float64), [0, 1])).dtype == rl.float32
    assert rl.tensor(OfPython(np.array([1, 2], np.int16), [0, 1])).dtype == rl.int64
    assert rl.tensor(OfPython(np.array([], np.float64), [])).dtype == rl.float32


def test_missing_values_are_no_nan():
    class WithNone(Labelled):
        def __iter__(self):
            return iter([1.0, None])

    gap = WithNone([1.0, float("nan")], [0, 1])
    with pytest.raises(RuntimeError, match="Could not infer dtype of NoneType"):
        rl.tensor(gap)
    with pytest.raises(TypeError, match="must be real number, not NoneType"):
        rl.FloatTensor(gap)
    assert rl.tensor(Labelled([1.0, float("nan")], [0, 1])).isnan().tolist() == [False, True]


def test_what_is_no_numbers_is_refused():
    with pytest.raises(ValueError, match="too many dimensions 'str'"):
        rl.tensor(Labelled(np.array(["a", "b"]), [0, 1]))
    with pytest.raises(TypeError, match="datetime64"):
        rl.tensor(Frame(np.array([["2020-01-01"]], "M8[D]"), "a"))
    with pytest.raises(ValueError, match="could not determine the shape of object type 'UserDict'"):
        rl.tensor(collections.UserDict({0: 1.0, 1: 2.0}))

    class Refuses:
        def __array__(self, dtype=None, copy=None):
            raise ValueError("no array today")

    with pytest.raises(ValueError, match="no array today"):
        rl.tensor(Refuses())
    with pytest.raises(TypeError, match="expected np.ndarray"):
        rl.from_numpy(Labelled([1.0], [0]))
    with pytest.raises(TypeError, match="must be a sequence"):
        rl.Tensor(Interface(np.array(2)))  # a size, or a value


def test_indices():
    x = rl.arange(9.0).reshape(3, 3)
    rows = Labelled([2, 0], [1, 0])
    assert x[rows].tolist() == x[[2, 0]].tolist()
    assert x[:, rows].tolist() == x[:, [2, 0]].tolist()
    mask = Labelled([True, False, False], [2, 1, 0])
    assert x[mask].tolist() == x[:1].tolist()
    x[mask] = 7
    assert x[:, 0].tolist() == [7, 3, 6]
    assert x[rl.tensor([0]), Labelled([1], "a")].tolist() == [7]


def test_samplers_and_collation():
    assert WeightedRandomSampler(Labelled([1.0, 2.0], [1, 0]), 2).weights.tolist() == [1, 2]
    values = Labelled([1.0, 2.0], [1, 0])
    assert default_convert(values) is values
    with pytest.raises(TypeError, match="default_collate"):
        default_collate([values, values])
    masked = np.ma.array([1.0, 2.0], mask=[0, 1])
    assert default_convert(masked) is masked


def test_conversions_of_objects():
    assert rl.tensor([decimal.Decimal("1.5"), fractions.Fraction(1, 4)], dtype=rl.float64).tolist() == [
        1.5,
        0.25,
    ]
    assert rl.tensor([ctypes.c_double(2.5)]).tolist() == [2.5]
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        rl.tensor([decimal.Decimal(1)], dtype=rl.int64)


def test_an_iterator_without_end_is_read_as_far_as_its_length():
    class Endless:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return float(i)

        def __iter__(self):
            return itertools.count()

    with pytest.raises(ValueError, match="expected sequence of length|got 4"):
        rl.tensor([[1.0, 2.0, 3.0], Endless()])


def test_a_list_that_shrinks_while_it_is_read():
    data = [1.0] * 100

    class Shrinks:
        def __float__(self):
            del data[2:]
            return 1.0

    data[1] = Shrinks()
    with pytest.raises(ValueError, match="changed while it was read"):
        rl.tensor(data, dtype=rl.float64)


@pytest.mark.parametrize("dtype", [None, rl.float32, rl.int64, rl.bool], ids=str)
def test_lists_that_contain_themselves(dtype):
    def room():
        try:
            return 1 + room()
        except RecursionError:
            return 1

    before = room()
    only = []
    only.append(only)
    last = [1, 2]
    last.append(last)
    both = [[1], [2]]
    both[1] = both
    for data in (only, last, both):
        for _ in range(5):
            with pytest.raises((TypeError, ValueError)):
                rl.tensor(data, dtype=dtype)
    assert room() >= before - 2
    deep = [1.0]
    for _ in range(70):
        deep = [deep, deep]
    with pytest.raises((RuntimeError, MemoryError)):
        rl.tensor(deep)


def test_operands():
    t = rl.tensor([1.0, 2.0, 3.0])
    assert (np.array([2.0, 2.0, 2.0]) / t).tolist() == [2, 1, pytest.approx(2 / 3)]
    assert (np.array(2) / t).dtype == rl.float64
    assert (np.array([True, False, True]) / t).dtype == rl.float32
    for other in ("a", b"x", None, [1], object()):
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+="):
            t += other
    assert isinstance(t, rl.Tensor)
    for other in (b"ab", bytearray(b"ab")):
        with pytest.raises(TypeError, match="can't concat Tensor"):
            other + t

    class Knows:
        def __radd__(self, other):
            return "known"

    t += Knows()
    assert t == "known"
    masked = np.ma.array([1.0, 2.0], mask=[0, 1])
    assert type(rl.tensor([1.0, 2.0]) < masked) is not rl.Tensor


def test_sizes():
    assert str(tuple(rl.Size([True, False]))) == "(1, 0)"


# --- the libraries themselves -------------------------------------------------------------------------------


@reading
def test_pandas(read):
    pd = pytest.importorskip("pandas")
    for index in ([0, 1, 2], [2, 1, 0], list("abc"), pd.MultiIndex.from_tuples([(0, 1), (1, 0), (2, 2)])):
        assert read(pd.Series([1.0, 2.0, 3.0], index=index)).tolist() == [1, 2, 3]
    for columns in ([0, 1], list("ab")):
        assert read(pd.DataFrame([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], columns=columns)).tolist()[1] == [3, 4]
    assert read(pd.Index([3, 1, 2])).tolist() == [3, 1, 2]
    assert read(pd.Series([3, 1], dtype="Int64", index=[1, 0])).tolist() == [3, 1]
    for bad in (
        pd.Series([1, None], dtype="Int64"),
        pd.Series(list("ab")),
        pd.DataFrame({"a": [1], "b": ["x"]}),
    ):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            read(bad)


@reading
def test_polars(read):
    pl = pytest.importorskip("polars")
    assert read(pl.Series([3, 1, 2])).tolist() == [3, 1, 2]
    assert read(pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})).tolist() == [
        [1, 4],
        [2, 5],
        [3, 6],
    ]
    with pytest.raises((TypeError, RuntimeError)):
        read(pl.Series([1.0, None]))


@reading
def test_pyarrow(read):
    pa = pytest.importorskip("pyarrow")
    assert read(pa.array([3.0, 1.0, 2.0])).tolist() == [3, 1, 2]
    assert read(pa.chunked_array([[3.0], [1.0, 2.0]])).tolist() == [3, 1, 2]
    assert read(pa.table({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})).tolist() == [[1, 4], [2, 5], [3, 6]]


@reading
def test_xarray(read):
    xr = pytest.importorskip("xarray")
    assert read(xr.DataArray([1.0, 2.0], coords={"x": [1, 0]}, dims="x")).tolist() == [1, 2]
    assert read(xr.DataArray([[1.0, 2.0, 3.0]], dims=("a", "b"))).tolist() == [[1, 2, 3]]


@reading
def test_pillow(read):
    image = pytest.importorskip("PIL.Image")
    values = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    assert read(image.fromarray(values)).tolist() == values.tolist()


def test_scikit_learn():
    datasets = pytest.importorskip("sklearn.datasets")
    if "pandas" in sys.modules or pytest.importorskip("pandas"):
        table = datasets.load_iris(as_frame=True)
        assert rl.tensor(table.data).shape == (150, 4)
        assert rl.equal(rl.tensor(table.target), rl.tensor(table.target.to_numpy()))


@pytest.mark.parametrize("text", [np.str_("ab"), np.bytes_(b"abcd")], ids=["str", "bytes"])
@pytest.mark.parametrize("make", [rl.tensor, rl.as_tensor, rl.asarray])
def test_characters_are_no_numbers(make, text):
    with pytest.raises(TypeError):
        make(text)
    assert rl.asarray(bytearray(b"abcd"), dtype=rl.uint8).tolist() == [97, 98, 99, 100]
