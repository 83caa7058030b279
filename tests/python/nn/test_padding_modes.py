"""Padding with a tensor's own elements, against PyTorch on random shapes and amounts."""

import random

import pytest

import rushlight as rl

oracle = pytest.importorskip("torch")

MODES = ["reflect", "replicate", "circular"]


def _outcome(lib, x, pad, mode):
    try:
        return lib.nn.functional.pad(x, pad, mode=mode)
    except RuntimeError as error:
        return error


@pytest.mark.parametrize("mode", MODES)
def test_values_gradients_and_refusals(mode):
    rng = random.Random(mode)
    compared = 0
    for _ in range(120):
        dims = rng.choice([1, 2, 3])
        shape = [rng.randint(1, 2) for _ in range(rng.choice([1, 2]))] + [
            rng.randint(3, 6) for _ in range(dims)
        ]
        least = rng.choice([0, 0, -1])  # negative amounts crop
        pad = [rng.randint(least, 2) for _ in range(2 * dims)]
        theirs = oracle.randn(shape, dtype=oracle.float64)
        ours = rl.from_numpy(theirs.numpy().copy())
        if len(shape) == 4 and rng.random() < 0.5:
            theirs = theirs.to(memory_format=oracle.channels_last)
            ours = ours.to(memory_format=rl.channels_last)
        theirs.requires_grad_(), ours.requires_grad_()
        expected, found = _outcome(oracle, theirs, pad, mode), _outcome(rl, ours, pad, mode)
        assert isinstance(found, Exception) == isinstance(expected, Exception), (shape, pad, found, expected)
        if isinstance(expected, Exception):
            continue
        assert found.tolist() == expected.tolist(), (shape, pad)
        weights = oracle.randn(expected.shape, dtype=oracle.float64)
        (expected * weights).sum().backward()
        (found * rl.from_numpy(weights.numpy())).sum().backward()
        assert rl.allclose(ours.grad, rl.from_numpy(theirs.grad.numpy())), (shape, pad)
        compared += 1
    assert compared > 60


@pytest.mark.parametrize("mode", MODES)
def test_further_derivatives(mode):
    def padded(t):
        return rl.nn.functional.pad(t, (1, 2, 2, 1), mode=mode)

    x = rl.randn(2, 3, 4, 5, dtype=rl.float64, requires_grad=True)
    assert rl.autograd.gradcheck(padded, (x,), check_forward_ad=True, check_batched_grad=True)
    assert rl.autograd.gradgradcheck(lambda t: padded(t).sin(), (x,))
    assert rl.equal(rl.func.vmap(padded)(x), padded(x))


def both(program, *arrays):
    """What a program returns with each library, as lists."""
    results = []
    for module in (rl, oracle):
        tensors = [module.tensor(a, requires_grad=isinstance(a[0], float)) for a in arrays]
        results.append([t.tolist() for t in program(module, *tensors)])
    return results


oracle = pytest.importorskip("torch")


@pytest.mark.parametrize("amounts", [(-1, 1, -2, 1), (2, -1, 1, -1), (0, -2, 3, 0), (-1, -1, 2, 2)])
def test_circular_padding_wraps_what_negative_amounts_leave(amounts):
    def program(m, x):
        y = m.nn.functional.pad(x.view(1, 1, 4, 4), amounts, "circular")
        return [y, *m.autograd.grad((y * y).sum(), [x])]

    ours, theirs = both(program, [float(i) for i in range(16)])
    assert ours == theirs
