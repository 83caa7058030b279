"""`tensor` of nested sequences, of arrays among them, and of memory that is not to be written to."""

import math
import subprocess
import sys

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")

DATA = [
    "[[1, 2], [3]]", "[[1], [2, 3]]", "[1, [2, 3]]", "[1.0, [2]]", "[True, [True]]", "[1, (2,)]",
    "[1, [2.5]]", "[1, []]", "[[2, 3], 1]", "[[1, 2], 3, [4, 5]]", "[[1, 2], 3.5]", "[[1, 2], None]",
    "[[1, 2], 'a']",
    "[[1, 2], 'ab']", "[[1, 2], b'ab']", "[[1, 2], {}]", "[1, None]", "[1, 'a']", "['a']", "[None]", "[{}]",
    "[1, range(2)]", "[[], [1]]", "[[], 1]", "[[], ['a']]", "[[[]], [[1]]]", "[(), [2.5], [True]]",
    "[[[1, 2]], [[3]]]", "[[1, 2], range(2)]", "[1, p.ones(2)]", "[p.ones(2), 1]", "[[1, 2], p.ones(3)]",
    "[p.ones(2, dtype=p.int64)] * 2", "[[1], p.ones(1), p.ones(1, 1)]", "[p.ones(()), [1]]",
    "[np.ones(2), np.ones(2)]", "[np.ones(3), np.ones(2)]", "[[np.arange(2)], [np.arange(2)]]",
    "[np.ones(2, dtype=np.float32), [1, 2]]", "[[1, 2], np.ones(2, dtype=np.int8)]",
    "(np.arange(3)[::-1], np.arange(6)[::2])", "[np.ones((2, 2)), np.zeros((2, 2))]",
    "[np.array([1 + 2j]), [2]]", "[np.zeros(0), np.zeros(0)]", "[[1, 2], np.ones((2, 2))]",
]  # fmt: skip


def made(package, text, **options):
    try:
        t = package.tensor(eval(text, {"p": package, "np": np}), **options)
    except (TypeError, ValueError, RuntimeError) as error:
        return type(error), str(error)
    return str(t.dtype).rpartition(".")[2], tuple(t.shape), t.tolist()


@pytest.mark.parametrize("text", DATA)
@pytest.mark.filterwarnings("ignore")
def test_nested_sequences(text):
    expected, got = made(torch, text), made(rl, text)
    if "0-dimensional arrays" in str(expected[1]):  # NumPy's words
        expected, got = expected[0], got[0]
    assert got == expected


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64"])
@pytest.mark.parametrize(
    "text", ["[1, [2]]", "[[1, 2], 3]", "[1, None]", "[[], [1]]", "[np.arange(2), [1, 0]]"]
)
@pytest.mark.filterwarnings("ignore")
def test_nested_sequences_of_a_given_dtype(text, dtype):
    assert made(rl, text, dtype=getattr(rl, dtype)) == made(torch, text, dtype=getattr(torch, dtype))


NUMBERS = ["nan", "inf", "-inf", "1e30", "2.0**63", "-129", "300", "2**40", "-1.0", "-0.5", "255.9"]
PLACES = {
    "tensor": lambda t, v, dtype: t.tensor([v], dtype=dtype),
    "scalar": lambda t, v, dtype: t.tensor(v, dtype=dtype),
    "asarray": lambda t, v, dtype: t.asarray([[v]], dtype=dtype),
    "new_tensor": lambda t, v, dtype: t.ones(1, dtype=dtype).new_tensor([v]),
    "full": lambda t, v, dtype: t.full((1,), v, dtype=dtype),
    "item": lambda t, v, dtype: t.ones(1, dtype=dtype).index_put_((t.tensor([0]),), t.tensor(v, dtype=dtype)),
    "where": lambda t, v, dtype: t.where(t.tensor([False]), t.ones(1, dtype=dtype), v).to(dtype),
    "where, method": lambda t, v, dtype: t.ones(1, dtype=dtype).where(t.tensor([False]), v).to(dtype),
}


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "bool", "float16", "float32"])
@pytest.mark.parametrize("place", PLACES)
def test_numbers_without_a_counterpart_are_refused(place, dtype):
    if (place, dtype) == ("full", "float16"):
        pytest.skip("PyTorch fills with infinity, and refuses the same number in masked_fill")
    for text in NUMBERS:
        value = eval(text, {"nan": math.nan, "inf": math.inf})
        results = []
        for lib in (rl, torch):
            try:
                results.append(repr(PLACES[place](lib, value, getattr(lib, dtype)).tolist()))
            except RuntimeError as error:
                results.append("refused" if "without overflow" in str(error) else str(error))
        assert results[0] == results[1], (place, dtype, text)


def test_arrays_in_lists_are_checked_like_numbers():
    with pytest.raises(RuntimeError, match="without overflow"):
        rl.tensor([np.array([300]), np.array([1])], dtype=rl.uint8)
    with pytest.raises(TypeError):
        rl.tensor([np.array([1j])], dtype=rl.float32)


PROGRAM = """
import warnings
import numpy as np
import rushlight as rl

array = np.arange(3.0)
array.flags.writeable = False
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    rl.tensor(array), rl.tensor([array]), rl.as_tensor(array, dtype=rl.float32)
    assert not seen, "copies are safe to write to"
    {call}
    {call}
assert len(seen) == 1, seen
assert "is not writable" in str(seen[0].message)
"""


@pytest.mark.parametrize(
    "call",
    ["rl.from_numpy(array)", "rl.as_tensor(array)", "rl.frombuffer(b'12345678', dtype=rl.float32)"],
)
def test_read_only_memory_warns_once(call):
    subprocess.run([sys.executable, "-c", PROGRAM.format(call=call)], check=True)
