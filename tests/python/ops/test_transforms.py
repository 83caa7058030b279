"""Transforms over every operator row: vmap is a loop, forward mode is reverse mode."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from engine import arguments, flatten, resolve  # noqa: E402
from test_ops import MAIN, ROWS, samples  # noqa: E402

import rushlight as rl  # noqa: E402
from rushlight.func import jvp, vjp, vmap  # noqa: E402

REFUSALS = (
    "dynamic shape",
    "different shapes for different examples",
    "data-dependent control flow",
    "randomness error mode",
    "calling .item()",
    "doesn't have storage",
    "needs num_classes",
)
# Its offset counts in the memory that all examples share: a loop over slices asks for something else.
STORAGE = ("as_strided", "as_strided_copy", "as_strided_scatter")
BATCH = 3


def each_row():
    return pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


def tensors_of(args):
    return [i for i, a in enumerate(args) if isinstance(a, rl.Tensor)]


def is_inexact(t):
    return t.is_floating_point() or t.is_complex()


def tensor_results(out):
    return [o for o in flatten(out) if isinstance(o, rl.Tensor)]


def stacked(t):
    """Different examples of the same kind: the tensor, reversed, and mixed."""
    if t.numel() == 0 or t.dtype == rl.bool:
        return rl.stack([t] * BATCH)
    flat = t.reshape(-1)
    return rl.stack([t, flat.flip(0).reshape(t.shape), flat.roll(1).reshape(t.shape)])


def check_mapped(function, args, kwargs, which):
    """vmap over the arguments ``which`` against calls on single examples."""
    batches = [stacked(args[i]) for i in which]

    def call(*examples):
        given = list(args)
        for i, e in zip(which, examples):
            given[i] = e
        return tuple(tensor_results(function(*given, **kwargs)))

    try:
        singles = [call(*(b[k] for b in batches)) for k in range(BATCH)]
    except Exception:
        return False  # these examples are not in the operator's domain
    if not singles[0] or any(a.shape != b.shape for row in singles for a, b in zip(row, singles[0])):
        return False
    try:
        mapped = vmap(call)(*batches)
    except RuntimeError as error:
        if any(text in str(error) for text in REFUSALS):
            return False
        raise
    for k, found in enumerate(mapped):
        expected = rl.stack([row[k] for row in singles])
        rl.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6, equal_nan=True)
    return True


@each_row()
def test_vmap_is_a_loop(row):
    if "vmap" in row.refused:
        pytest.skip(row.refused["vmap"])
    if row.name in STORAGE:
        pytest.skip("storage offsets differ between slices and examples")
    function = resolve(rl, row.name)
    for sample in samples(row, MAIN[row.name]):
        args, kwargs = arguments(rl, sample, MAIN[row.name])
        where = tensors_of(args)
        for n in range(1, len(where) + 1):
            for which in itertools.combinations(where, n):
                check_mapped(function, args, kwargs, which)


def differentiable(row, function, args, kwargs, where):
    """The results that depend smoothly on the arguments ``where``, as a function of these alone."""

    def call(*values):
        given = list(args)
        for i, v in zip(where, values):
            given[i] = v
        return tuple(o for o in tensor_results(function(*given, **kwargs)) if is_inexact(o))

    return call


def _each_gradient_sample(row):
    function = resolve(rl, row.name)
    for sample in samples(row, MAIN[row.name]):
        args, kwargs = arguments(rl, sample, MAIN[row.name])
        where = [i for i in tensors_of(args) if is_inexact(args[i])]
        if where:
            call = differentiable(row, function, args, kwargs, where)
            yield call, tuple(args[i].detach() for i in where)


def inner(a, b):
    """The real inner product of two tuples of tensors."""
    return sum(float((x.conj() * y).real.sum() if x.is_complex() else (x * y).sum()) for x, y in zip(a, b))


@pytest.mark.parametrize("row", [r for r in ROWS if r.grad], ids=lambda row: row.id)
def test_forward_is_reverse(row):
    """<u, J v> = <J' u, v> for random u and v."""
    if "forward" in row.refused:
        pytest.skip(row.refused["forward"])
    rl.manual_seed(0)
    for call, values in _each_gradient_sample(row):
        outputs, pull = vjp(call, *values)
        if not outputs:
            continue
        tangents = tuple(rl.randn_like(v) for v in values)
        u = tuple(rl.randn_like(o) for o in outputs)
        again, products = jvp(call, values, tangents)
        rows = pull(u)
        left, right = inner(u, products), inner(rows, tangents)
        if not np.isfinite(right) or not np.isfinite(left):
            continue
        assert left == pytest.approx(right, rel=1e-4, abs=1e-6)
        for a, b in zip(outputs, again):
            rl.testing.assert_close(a, b, equal_nan=True)
