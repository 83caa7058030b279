"""Transforms over every operator row: vmap is a loop, forward mode is reverse mode."""

import itertools

import numpy as np
import pytest
from engine import arguments, flatten, resolve, tensors_in, variables
from loader import each, main_dtype, samples

import rushlight as rl
from rushlight.func import jvp, vjp, vmap

# What vmap says of operators that it cannot map.
REFUSALS = (
    "dynamic shape",
    "different shapes for different examples",
    "data-dependent control flow",
    "randomness error mode",
    "calling .item()",
    "doesn't have storage",
    "needs num_classes",
    "is not possible because there exists a Tensor `other` in extra_args",
    "would return a differently shaped Tensor",
)
BATCH = 3


def tensors_of(args):
    return [i for i, a in enumerate(args) if isinstance(a, rl.Tensor)]


def tensor_results(out):
    return [o for o in flatten(out) if isinstance(o, rl.Tensor)]


def mixed(t):
    """Different examples of the same kind: the tensor, reversed, and rotated."""
    if t.numel() == 0 or t.dtype == rl.bool:
        return alike(t)
    flat = t.reshape(-1)
    return rl.stack([t, flat.flip(0).reshape(t.shape), flat.roll(1).reshape(t.shape)])


def alike(t):
    return rl.stack([t] * BATCH)


def one_by_one(call, batches):
    """The results of each example, or None where these are no operands of the operator."""
    try:
        singles = [call(*(b[k] for b in batches)) for k in range(BATCH)]
    except (RuntimeError, IndexError, ValueError):  # out of the domain
        return None
    same = all(a.shape == b.shape for row in singles for a, b in zip(row, singles[0], strict=True))
    return singles if same else None


def check_mapped(function, args, kwargs, which):
    """vmap over the arguments ``which`` against calls on single examples; why not, where vmap refuses."""

    def call(*examples):
        given = list(args)
        for i, e in zip(which, examples):
            given[i] = e
        return tuple(tensor_results(function(*given, **kwargs)))

    batches = [mixed(args[i]) for i in which]
    singles = one_by_one(call, batches)
    if singles is None:
        batches = [alike(args[i]) for i in which]
        singles = one_by_one(call, batches)
    assert singles is not None, "the operator refuses the sample itself"
    if not singles[0]:
        return "no result is a tensor"
    try:
        found = vmap(call)(*batches)
    except RuntimeError as error:
        if any(text in str(error) for text in REFUSALS):
            return str(error)
        raise
    for k, result in enumerate(found):
        expected = rl.stack([row[k] for row in singles])
        rl.testing.assert_close(result, expected, rtol=1e-6, atol=1e-6, equal_nan=True)
    return None


@each("vmap")
def test_vmap_is_a_loop(row):
    function = resolve(rl, row.name)
    refusals = []
    for sample in samples(row):
        args, kwargs = arguments(rl, sample, main_dtype(row))
        where = tensors_of(args)
        for n in range(1, len(where) + 1):
            for which in itertools.combinations(where, n):
                refusals.append(check_mapped(function, args, kwargs, which))
    if not refusals:
        pytest.skip("no operand is a tensor")
    if None not in refusals:
        pytest.skip(f"refused: {refusals[0].splitlines()[0]}")


def spread(batch):
    """Another dimension of examples before the first."""
    return rl.stack([batch, batch.flip(0)])


@each("vmap")
def test_vmap_in_vmap_is_a_loop(row):
    """All operands have examples of both loops, or all but one, which has those of the inner loop alone."""
    function, compared = resolve(rl, row.name), 0
    for sample in samples(row)[:4]:
        args, kwargs = arguments(rl, sample, main_dtype(row))
        where = tensors_of(args)

        def call(*examples, args=args, kwargs=kwargs, where=where):
            given = list(args)
            for i, e in zip(where, examples):
                given[i] = e
            return tuple(tensor_results(function(*given, **kwargs)))

        inner_batches = [alike(args[i]) for i in where]
        if not where or not call(*(args[i] for i in where)):
            continue
        for alone in (None, *range(len(where))) if len(where) > 1 else (None,):
            batches = [b if i == alone else spread(b) for i, b in enumerate(inner_batches)]
            in_dims = tuple(None if i == alone else 0 for i in range(len(where)))
            try:
                outer = [[b if d is None else b[k] for b, d in zip(batches, in_dims)] for k in (0, 1)]
                rows = [vmap(call)(*one) for one in outer]
            except RuntimeError as error:
                if any(text in str(error) for text in REFUSALS):
                    pytest.skip(f"refused: {str(error).splitlines()[0]}")
                raise
            found = vmap(vmap(call), in_dims)(*batches)
            for k, result in enumerate(found):
                expected = rl.stack([r[k] for r in rows])
                rl.testing.assert_close(result, expected, rtol=1e-6, atol=1e-6, equal_nan=True)
            compared += 1
    if not compared:
        pytest.skip("no operand is a tensor")


def inner(a, b):
    """The real inner product of two tuples of tensors."""
    return sum(float((x.conj() * y).real.sum() if x.is_complex() else (x * y).sum()) for x, y in zip(a, b))


@each("forward")
def test_forward_is_reverse(row):
    """<u, J v> = <J' u, v> for random u and v."""
    rl.manual_seed(0)
    compared = 0
    for sample in samples(row):
        values, function = variables(rl, row, sample, main_dtype(row))
        values = tuple(v.detach() for v in values)

        def call(*tensors, function=function):
            return tuple(t for t in tensors_in(function(tensors)) if t.is_floating_point() or t.is_complex())

        if not values or not all(t.isfinite().all() for t in call(*values)) or not call(*values):
            continue
        outputs, pull = vjp(call, *values)
        tangents = tuple(rl.randn_like(v) for v in values)
        u = tuple(rl.randn_like(o) for o in outputs)
        again, products = jvp(call, values, tangents)
        rows = pull(u)
        left, right = inner(u, products), inner(rows, tangents)
        for a, b in zip(outputs, again, strict=True):
            rl.testing.assert_close(a, b, equal_nan=True)
        if np.isfinite(left) or np.isfinite(right):
            assert left == pytest.approx(right, rel=1e-4, abs=1e-6)
            compared += 1
    if not compared:
        pytest.skip("no sample has floating operands and results with finite slopes")
