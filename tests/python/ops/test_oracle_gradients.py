"""Gradients of both orders of every row are PyTorch's, for fixed cotangents."""

import warnings

import engine
import numpy as np
import pytest
from loader import each, main_dtype, samples

import rushlight

oracle = pytest.importorskip("torch", reason="PyTorch is the oracle of these gradients")


def weighted(module, tensors, low, high):
    """A sum of all elements, each with a weight of its own."""
    total = 0
    for t in tensors:
        t = t.to(module.complex128).abs() if t.is_complex() else t
        weights = module.linspace(low, high, t.numel(), dtype=module.float64).reshape(t.shape)
        total = total + (t * weights).sum()
    return total


def gradients(module, row, sample, dtype):
    """First and second gradients; None where no result depends on an operand."""
    leaves, call = engine.variables(module, row, sample, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = [t for t in engine.tensors_in(call(leaves)) if t.requires_grad]
    if not outputs:
        return None
    loss = weighted(module, outputs, 0.5, 1.5)
    first = module.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    used = [g for g in first if g is not None and g.requires_grad]
    if not used:
        return first, ()
    return first, module.autograd.grad(weighted(module, used, 1.0, 2.0), leaves, allow_unused=True)


def assert_equal(ours, theirs, what):
    assert len(ours) == len(theirs), what
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a is None or b is None:
            only = b if a is None else a
            assert only is None or not np.any(engine.numbers(only)), f"{what} {i}: one side has no gradient"
            continue
        assert tuple(a.shape) == tuple(b.shape), f"{what} {i}"
        assert engine.dtype_name(a) == engine.dtype_name(b), f"{what} {i}"
        np.testing.assert_allclose(
            engine.numbers(a), engine.numbers(b), rtol=1e-9, atol=1e-9, err_msg=f"{what} {i}"
        )


@each("gradients")
def test_gradients_are_the_oracles(row):
    dtype, compared = main_dtype(row), 0
    for sample in samples(row, dtype):
        with oracle.nn.attention.sdpa_kernel(oracle.nn.attention.SDPBackend.MATH):
            try:
                theirs = gradients(oracle, row, sample, dtype)
            except (RuntimeError, TypeError, IndexError, AttributeError):
                continue  # the oracle has no such gradient
        if theirs is None:
            continue
        ours = gradients(rushlight, row, sample, dtype)
        assert ours is not None, "the result does not require grad"
        assert_equal(ours[0], theirs[0], "gradient")
        if theirs[1] and ours[1]:
            assert_equal(ours[1], theirs[1], "second gradient")
        compared += 1
    if not compared:
        pytest.skip("the oracle has no gradient for any sample")
