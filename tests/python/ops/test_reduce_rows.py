"""The rows of the reduction, sort, index and join families against PyTorch, with two orders of gradients."""

import warnings

import numpy as np
import pytest
import samples_index
import samples_join
import samples_reduction
import samples_sort

import rushlight

oracle = pytest.importorskip("torch", reason="PyTorch is the oracle of these rows")

ROWS = {**samples_reduction.ROWS, **samples_sort.ROWS, **samples_index.ROWS, **samples_join.ROWS}
CASES = [
    pytest.param(name, *row, id=f"{name}-{i}") for name, rows in ROWS.items() for i, row in enumerate(rows)
]


def find(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def to_tensors(module, value, leaves, grad):
    """The arguments with arrays as tensors of `module`; float64 ones are noted in `leaves`."""
    if isinstance(value, np.ndarray):
        tensor = module.tensor(value.tolist(), dtype=find(module, str(value.dtype))).reshape(value.shape)
        if grad and value.dtype == np.float64:
            leaves.append(tensor.requires_grad_())
        return tensor
    if isinstance(value, (list, tuple)):
        return type(value)(to_tensors(module, v, leaves, grad) for v in value)
    if isinstance(value, dict):
        return {k: to_tensors(module, v, leaves, grad) for k, v in value.items()}
    return value


def flat(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def run(module, name, args, kwargs, grad=False):
    leaves = []
    args, kwargs = to_tensors(module, args, leaves, grad), to_tensors(module, kwargs, leaves, grad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = flat(find(module, name)(*args, **kwargs))
    if not grad:
        return outputs
    return leaves, outputs


def assert_equal(ours, theirs, what):
    assert len(ours) == len(theirs), what
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if b is None or a is None:
            missing = b if a is None else a
            assert missing is None or not missing.detach().numpy(force=True).any(), (
                f"{what} {i}: only one side has a gradient"
            )
            continue
        assert tuple(a.shape) == tuple(b.shape), f"{what} {i}"
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1], f"{what} {i}"
        np.testing.assert_allclose(
            a.detach().numpy(), b.detach().numpy(force=True), rtol=1e-9, atol=1e-9, err_msg=f"{what} {i}"
        )


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_values(name, args, kwargs):
    assert_equal(run(rushlight, name, args, kwargs), run(oracle, name, args, kwargs), "output")


def gradients(module, name, args, kwargs):
    """First and second gradients for fixed cotangents; None where the operator has none."""
    leaves, outputs = run(module, name, args, kwargs, grad=True)
    outputs = [o for o in outputs if isinstance(o, module.Tensor) and o.requires_grad]
    if not outputs or not leaves:
        return None
    loss = sum(
        (o * module.linspace(0.5, 1.5, o.numel(), dtype=module.float64).reshape(o.shape)).sum()
        for o in outputs
    )
    first = module.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    used = [g for g in first if g is not None and g.requires_grad]
    if not used:
        return first, ()
    loss = sum(
        (g * module.linspace(1.0, 2.0, g.numel(), dtype=module.float64).reshape(g.shape)).sum() for g in used
    )
    return first, module.autograd.grad(loss, leaves, allow_unused=True)


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_gradients(name, args, kwargs):
    try:
        theirs = gradients(oracle, name, args, kwargs)
    except RuntimeError as error:
        pytest.skip(f"the oracle has no such gradient: {error}")
    if theirs is None:
        pytest.skip("no gradient to compare")
    ours = gradients(rushlight, name, args, kwargs)
    assert ours is not None, "the result does not require grad"
    assert_equal(ours[0], theirs[0], "gradient")
    if theirs[1] and ours[1]:
        assert_equal(ours[1], theirs[1], "second gradient")
