"""Every property over every operator row.

pytest tests/python/ops                         all rows
pytest tests/python/ops -k "softmax and grad"   one operator, one property
python tests/python/ops/test_ops.py record      writes golden.json.gz from the installed PyTorch
"""

import sys

import engine
import numpy as np
import pytest
from engine import arguments, compare, flatten, numbers, resolve, tensors_in
from loader import ROWS, each, main_dtype, refusal, samples

import rushlight as rl


def is_tensor_sample(sample):
    return sample.args and isinstance(sample.args[0], np.ndarray)


@pytest.mark.parametrize(
    "row, dtype",
    [
        pytest.param(row, dtype, id=f"{row.id}-{dtype}")
        for row in ROWS
        if refusal(row, "values") is None
        for dtype in row.dtypes
    ],
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


def test_golden_values_are_the_answers():
    """What is compared where PyTorch is not installed: one sample of each row."""
    compared = 0
    for row in ROWS:
        for dtype in row.dtypes if refusal(row, "values") is None else ():
            recorded = engine.golden(row, dtype)
            for sample in samples(row, dtype) if recorded else ():
                theirs = recorded.get(engine.digest(sample))
                if theirs is not None and not isinstance(theirs, Exception):
                    compare(row, dtype, engine.answer(rl, row, sample, dtype), theirs)
                    compared += 1
                    break
    assert compared > 800


@each("reference")
def test_reference(row):
    """The NumPy reference agrees, independently of PyTorch."""
    dtype = main_dtype(row)
    for sample in samples(row, dtype):
        args, kwargs = arguments(rl, sample, dtype)
        mine = resolve(rl, row.name)(*args, **kwargs)
        for leaf, expected in zip(
            flatten(mine), flatten(row.reference(*sample.args, **sample.kwargs)), strict=True
        ):
            engine.close(row, dtype, numbers(leaf), np.asarray(expected))


@each("method")
def test_method(row):
    """The method gives what the function gives."""
    dtype = main_dtype(row)
    for sample in filter(is_tensor_sample, samples(row, dtype)):
        (self, *args), kwargs = arguments(rl, sample, dtype)
        compare(
            row,
            dtype,
            resolve(rl, f"Tensor.{row.name}")(self, *args, **kwargs),
            resolve(rl, row.name)(self, *args, **kwargs),
        )


def _transposed(t):
    return t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else t


def _reversed(t):
    return t.flip(0).contiguous()[::-1] if t.dim() else t


def _strided(t):
    wide = rl.zeros(*t.shape, 2, dtype=t.dtype, device=t.device)
    wide[..., 0] = t
    return wide[..., 0]


@each("layout")
@pytest.mark.parametrize(
    "layout", [_transposed, _reversed, _strided], ids=["transposed", "reversed", "strided"]
)
def test_layout(row, layout):
    """Non-contiguous inputs, negative strides among them, give the same values."""
    dtype = main_dtype(row)
    function = resolve(rl, row.name)
    for sample in samples(row, dtype):
        args, kwargs = arguments(rl, sample, dtype)
        odd_args, odd_kwargs = arguments(rl, sample, dtype, layout=layout)
        compare(row, dtype, function(*odd_args, **odd_kwargs), function(*args, **kwargs))


@each("out")
def test_out(row):
    """out= is filled and returned, resized when empty, written through when strided."""
    dtype = main_dtype(row)
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


@each("inplace")
def test_inplace(row):
    """name_ changes its tensor into the result, returns it and counts a version."""
    dtype = main_dtype(row)
    for sample in filter(is_tensor_sample, samples(row, dtype)):
        (self, *args), kwargs = arguments(rl, sample, dtype)
        expected = resolve(rl, row.name)(self, *args, **kwargs)
        if expected.shape != self.shape or expected.dtype != self.dtype:
            continue
        before = self._version
        methods = rl.Tensor if hasattr(rl.Tensor, row.name) else rl  # some have functions alone
        assert getattr(methods, f"{row.name}_")(self, *args, **kwargs) is self
        assert self._version > before
        compare(row, dtype, self, expected)


# From so many elements on, gradients are checked along random directions instead of one by one.
SMALL = 24


def _check_gradients(row, check):
    dtype, checked = main_dtype(row), 0
    for sample in samples(row, dtype)[:4]:
        variables, call = engine.variables(rl, row, sample, dtype)
        if not variables or any(v.numel() == 0 or not v.isfinite().all() for v in variables):
            continue

        def function(*tensors, call=call):
            return tuple(t for t in tensors_in(call(tensors)) if t.requires_grad)

        if not function(*variables):
            continue
        fast = sum(v.numel() for v in variables) > SMALL
        # Sums by atomic additions have no fixed order.
        assert check(function, tuple(variables), fast_mode=fast, nondet_tol=1e-12 if engine.DEVICE else 0.0)
        checked += 1
    if not checked:
        pytest.skip("no sample whose result depends smoothly on an operand")


@each("gradcheck")
def test_gradcheck(row):
    """Gradients agree with finite differences."""
    _check_gradients(row, rl.autograd.gradcheck)


@each("gradgradcheck")
def test_gradgradcheck(row):
    """So do second derivatives."""
    _check_gradients(row, rl.autograd.gradgradcheck)


if __name__ == "__main__" and sys.argv[1:] == ["record"]:
    print(engine.record(ROWS), "golden values")
