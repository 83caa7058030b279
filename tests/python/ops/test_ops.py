"""Every property over every operator row.

pytest tests/python/ops                         all rows
pytest tests/python/ops -k "softmax and grad"   one operator, one property
python tests/python/ops/test_ops.py record      writes golden.json.gz from the installed PyTorch
"""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import engine  # noqa: E402
from engine import arguments, compare, convert, flatten, maker, numbers, resolve  # noqa: E402
from rows import Row, Sample  # noqa: E402

import rushlight as rl  # noqa: E402

PREFIXES = {"": "", "nn": "nn.functional.", "linalg": "linalg.", "special": "special.", "fft": "fft."}
RECORDS = {}  # public name -> the records of its overloads
for _record in rl._C._operator_records():
    if _record["function"] or _record["method"]:
        RECORDS.setdefault(PREFIXES[_record["space"]] + _record["name"], []).append(_record)


def has(name, fact):
    """Whether all overloads of an operator have a form."""
    records = RECORDS.get(name.removeprefix("Tensor."), [])
    return bool(records) and all(record[fact] for record in records)


def has_list_result(name):
    return any("-> Tensor[]" in record["schema"] for record in RECORDS.get(name, []))


def as_rows(rows):
    """Rows as they are; a dict of fixed calls (name -> [(args, kwargs), ...]) stands for rows of values.

    What forms those have is told by the records.
    """
    if not isinstance(rows, dict):
        return rows
    fixed = lambda calls: lambda make: [Sample(*call) for call in calls]
    return [
        Row(
            name,
            fixed(calls),
            dtypes=("float64",),
            grad=False,
            method=False,
            out=has(name, "out") and "." not in name.removeprefix("linalg.") and not has_list_result(name),
            inplace=has(name, "inplace") and "." not in name,
        )
        for name, calls in rows.items()
    ]


def load_rows():
    names = sorted(path.stem for path in HERE.glob("samples_*.py"))
    rows = [row for name in names for row in as_rows(getattr(importlib.import_module(name), "ROWS", []))]
    return list({row.name: row for row in reversed(rows)}.values())[::-1]


ROWS = load_rows()
MAIN = {row.name: "float64" if "float64" in row.dtypes else row.dtypes[0] for row in ROWS}


def each(*, where=lambda row: True):
    return pytest.mark.parametrize("row", [row for row in ROWS if where(row)], ids=lambda row: row.id)


# Rows of fixed calls whose property does not apply.
REFUSED = {
    "layout": {
        **dict.fromkeys(("as_strided", "as_strided_copy", "as_strided_scatter"), "the strides are arguments"),
        **dict.fromkeys(("Tensor.view_as", "view_as_complex"), "needs a viewable layout"),
    }
}


def skip_refused(row, rule):
    reason = row.refused.get(rule) or REFUSED.get(rule, {}).get(row.name)
    if reason:
        pytest.skip(f"refused: {reason}")


def samples(row, dtype):
    return list(row.samples(maker(row, dtype)))


def is_tensor_sample(sample):
    return sample.args and isinstance(sample.args[0], np.ndarray)


@pytest.mark.parametrize(
    "row, dtype", [pytest.param(row, dtype, id=f"{row.id}-{dtype}") for row in ROWS for dtype in row.dtypes]
)
def test_values(row, dtype):
    """Values, dtypes and shapes are the oracle's; broadcasting and zero sizes come with the samples."""
    torch = engine.oracle()
    recorded = {} if torch is not None else engine.golden(row, dtype)
    compared = 0
    for sample in samples(row, dtype):
        if torch is not None:
            theirs = engine.answer(torch, row, sample, dtype)
        elif (key := engine.digest(sample)) in recorded:
            theirs = recorded[key]
        else:
            continue
        if not isinstance(theirs, Exception):  # what PyTorch refuses may work here
            compared += 1
            compare(row, dtype, engine.answer(rl, row, sample, dtype), theirs)
    if not compared:
        pytest.skip("no PyTorch here, and no golden values" if torch is None else "PyTorch takes no sample")


def test_golden_values_are_of_these_samples():
    """Most of what was recorded still serves; otherwise `python tests/python/ops/test_ops.py record`."""
    keys = {(row.name, dtype): engine.golden(row, dtype).keys() for row in ROWS for dtype in row.dtypes}
    recorded = sum(map(len, keys.values()))
    rows = [row for row in ROWS if any(keys[row.name, dtype] for dtype in row.dtypes)]
    current = {
        (row.name, dtype, engine.digest(sample))
        for row in rows
        for dtype in row.dtypes
        if keys[row.name, dtype]
        for sample in samples(row, dtype)
    }
    found = sum((*place, key) in current for place, group in keys.items() for key in group)
    assert found >= 0.9 * recorded > 1000


@each(where=lambda row: row.reference is not None)
def test_reference(row):
    """The NumPy reference agrees, independently of PyTorch."""
    dtype = MAIN[row.name]
    for sample in samples(row, dtype):
        args, kwargs = arguments(rl, sample, dtype)
        mine = resolve(rl, row.name)(*args, **kwargs)
        for leaf, expected in zip(
            flatten(mine), flatten(row.reference(*sample.args, **sample.kwargs)), strict=True
        ):
            engine.close(row, dtype, numbers(leaf), np.asarray(expected))


@each(where=lambda row: row.method and "." not in row.name)
def test_method(row):
    """The method gives what the function gives."""
    dtype = MAIN[row.name]
    for sample in filter(is_tensor_sample, samples(row, dtype)):
        (self, *args), kwargs = arguments(rl, sample, dtype)
        compare(
            row, dtype, getattr(self, row.name)(*args, **kwargs), resolve(rl, row.name)(self, *args, **kwargs)
        )


def _transposed(t):
    return t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else t


def _reversed(t):
    return t.flip(0).contiguous()[::-1] if t.dim() else t


def _strided(t):
    wide = rl.zeros(*t.shape, 2, dtype=t.dtype, device=t.device)
    wide[..., 0] = t
    return wide[..., 0]


@each()
@pytest.mark.parametrize(
    "layout", [_transposed, _reversed, _strided], ids=["transposed", "reversed", "strided"]
)
def test_layout(row, layout):
    """Non-contiguous inputs, negative strides among them, give the same values."""
    skip_refused(row, "layout")
    dtype = MAIN[row.name]
    function = resolve(rl, row.name)
    for sample in samples(row, dtype):
        args, kwargs = arguments(rl, sample, dtype)
        odd_args, odd_kwargs = arguments(rl, sample, dtype, layout=layout)
        compare(row, dtype, function(*odd_args, **odd_kwargs), function(*args, **kwargs))


@each(where=lambda row: row.out)
def test_out(row):
    """out= is filled and returned, resized when empty, written through when strided."""
    dtype = MAIN[row.name]
    function = resolve(rl, row.name)
    for sample in samples(row, dtype):
        args, kwargs = arguments(rl, sample, dtype)
        expected = function(*args, **kwargs)
        if isinstance(expected, tuple):
            outs = tuple(t.new_empty(0) for t in expected)
            function(*args, **kwargs, out=outs)
            compare(row, dtype, outs, tuple(expected))
            continue
        for out in (expected.new_empty(0), _strided(rl.zeros_like(expected))):
            assert function(*args, **kwargs, out=out) is out
            compare(row, dtype, out, expected)


@each(where=lambda row: row.inplace)
def test_inplace(row):
    """name_ changes its tensor into the result, returns it and counts a version."""
    dtype = MAIN[row.name]
    for sample in filter(is_tensor_sample, samples(row, dtype)):
        (self, *args), kwargs = arguments(rl, sample, dtype)
        expected = resolve(rl, row.name)(self, *args, **kwargs)
        if expected.shape != self.shape or expected.dtype != self.dtype:
            continue
        before = self._version
        assert getattr(self, f"{row.name}_")(*args, **kwargs) is self
        assert self._version > before
        compare(row, dtype, self, expected)


def _differentiable(sample):
    """The sample's arrays of numbers, and a function that puts tensors in their places."""
    found = []

    def collect(value):
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            found.append(value)
            return len(found) - 1
        if isinstance(value, (list, tuple)):
            return type(value)(map(collect, value))
        return convert(rl, value, "float64")

    args = [
        collect(a) if isinstance(a, (np.ndarray, list, tuple)) else convert(rl, a, "float64")
        for a in sample.args
    ]
    marks = [isinstance(a, (np.ndarray, list, tuple)) for a in sample.args]

    def fill(value, tensors, original):
        if isinstance(original, np.ndarray) and original.dtype.kind in "fc":
            return tensors[value]
        if isinstance(original, (list, tuple)):
            return type(original)(fill(v, tensors, o) for v, o in zip(value, original))
        return value

    def rebuild(tensors):
        return [fill(a, tensors, o) if mark else a for a, o, mark in zip(args, sample.args, marks)]

    return found, rebuild


def _check_gradients(row, check):
    dtype = "complex128" if "float64" not in row.dtypes and "complex128" in row.dtypes else "float64"
    if dtype not in row.dtypes:
        pytest.skip("no float64")
    checked = 0
    for sample in samples(row, dtype)[:4]:
        arrays, rebuild = _differentiable(sample)
        if not arrays or any(a.size == 0 for a in arrays):
            continue
        tensors = [engine.to_tensor(rl, a, dtype, requires_grad=True) for a in arrays]
        kwargs = {k: convert(rl, v, dtype) for k, v in sample.kwargs.items()}

        def function(*inputs, rebuild=rebuild, kwargs=kwargs):
            result = resolve(rl, row.name)(*rebuild(inputs), **kwargs)
            leaves = [t for t in flatten(result) if hasattr(t, "requires_grad") and t.requires_grad]
            return tuple(leaves) if len(leaves) != 1 else leaves[0]

        assert check(function, tuple(tensors))
        checked += 1
    assert checked, "no sample with differentiable input"


@each(where=lambda row: row.grad)
def test_gradcheck(row):
    """Gradients agree with finite differences."""
    _check_gradients(row, rl.autograd.gradcheck)


@each(where=lambda row: row.grad and row.gradgrad)
def test_gradgradcheck(row):
    """So do second derivatives."""
    _check_gradients(row, rl.autograd.gradgradcheck)


if __name__ == "__main__" and sys.argv[1:] == ["record"]:
    print(engine.record(ROWS), "golden values")
