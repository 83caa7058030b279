"""Short lines, sums of narrow integers, products of few terms and parts of complex numbers have loops of
their own.
"""

import cmath
import itertools

import numpy as np
import pytest

import rushlight as torch
from rushlight._command.names import is_aliased

KINDS = ["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool"]


def lines(kind, count, n, spread, seed=0):
    """Numbers of which few, or many, are equal within a line."""
    rng = np.random.default_rng(seed + n)
    x = rng.integers(-spread, spread, (count, n))
    if kind == "bool":
        return torch.from_numpy(x > 0)
    if kind == "uint8":
        x = x % 256
    return torch.from_numpy(x).to(getattr(torch, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65])
def test_first_of_short_lines(kind, n):
    for spread, largest in itertools.product((3, 120), (True, False)):
        x = lines(kind, 70, n, spread)
        if "float" in kind and n > 3:
            x[0, 1], x[0, 3] = float("nan"), float("nan")
            x[1, 0], x[1, 2] = -0.0, 0.0
            x[2, n - 1], x[3, 0] = float("inf"), float("-inf")
        ordered = x.sort(-1, descending=largest).values
        for k in sorted({1, 2, 5, n - 1, n} & set(range(1, n + 1))):
            values, places = x.topk(k, largest=largest)
            torch.testing.assert_close(values, ordered[:, :k], rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(x.gather(1, places), values, rtol=0, atol=0, equal_nan=True)
            assert all(len(set(row)) == k for row in places.tolist())
            loose = x.topk(k, largest=largest, sorted=False)
            torch.testing.assert_close(
                loose.values.sort(-1, descending=largest).values, values, rtol=0, atol=0, equal_nan=True
            )


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_places_of_equal_elements_are_those_of_the_oracle(kind):
    oracle = pytest.importorskip("torch")
    if is_aliased():
        pytest.skip("compares with PyTorch")
    for n, spread, largest in itertools.product((5, 16, 33, 50, 64, 90), (4, 100), (True, False)):
        x = lines(kind, 40, n, spread, 1)
        theirs = oracle.from_numpy(x.to(torch.float64).numpy()).to(getattr(oracle, kind))
        for k, in_order in itertools.product((1, 2, 4, n // 2, n), (True, False)):
            if k == 1 and largest:
                continue  # the first of them, here
            ours = x.topk(k, largest=largest, sorted=in_order).indices
            other = theirs.topk(k, largest=largest, sorted=in_order).indices
            np.testing.assert_array_equal(ours.numpy(), other.numpy())
        for k in (1, n // 2, n):
            np.testing.assert_array_equal(
                x.kthvalue(k).indices.numpy(), theirs.kthvalue(k).indices.numpy(), err_msg=f"{n} {k}"
            )


def test_lines_that_lie_apart():
    x = lines("float32", 40, 30, 10_000)
    for y in (x.t(), x[:, ::2], x.t()[::2, 1:]):
        for dim in (0, 1):
            mine, plain = y.topk(4, dim=dim), y.contiguous().topk(4, dim=dim)
            assert torch.equal(mine.values, plain.values)
            assert torch.equal(mine.indices, plain.indices)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((70, n), 1) for n in (1, 2, 3, 5, 7, 8, 9, 16, 17, 33, 64, 65, 1000)]
    + [((1000, 3), 0), ((1000, 33), 0), ((6, 7, 40), 1), ((6, 7, 3), (0, 2)), ((9000,), 0), ((3, 70_001), 1)],
)
def test_sums_of_integers(kind, shape, dim):
    rng = np.random.default_rng(5)
    bounds = np.iinfo(kind)
    x = rng.integers(bounds.min, bounds.max, shape, dtype=kind, endpoint=True)
    for y in (x, x[..., ::2], np.asfortranarray(x)):
        expected = y.astype("int64").sum(dim)
        tensor = torch.from_numpy(np.ascontiguousarray(x))
        if y.shape != x.shape:
            tensor = tensor[..., ::2]
        elif y is not x:
            tensor = tensor.permute(*reversed(range(x.ndim))).contiguous().permute(*reversed(range(x.ndim)))
        np.testing.assert_array_equal(tensor.sum(dim).numpy(), expected)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 7, 8, 9])
def test_products_of_few_terms(kind, k):
    rng = np.random.default_rng(k)
    bounds = np.iinfo(kind)
    for m, n in ((1, 700), (2, 33), (7, 32), (5, 513), (3, 1200)):
        a = rng.integers(bounds.min, bounds.max, (m, k), dtype=kind, endpoint=True)
        b = rng.integers(bounds.min, bounds.max, (k, n), dtype=kind, endpoint=True)
        c = rng.integers(0, 9, (m, n)).astype(kind)
        product = a @ b
        for left in (torch.from_numpy(a), torch.from_numpy(a.T.copy()).t()):
            right = torch.from_numpy(b)
            np.testing.assert_array_equal((left @ right).numpy(), product)
            sums = torch.addmm(torch.from_numpy(c), left, right, alpha=3, beta=2)
            np.testing.assert_array_equal(sums.numpy(), (3 * product + 2 * c).astype(kind))
            wide = torch.from_numpy(np.repeat(b, 2, axis=1).copy())[:, ::2]
            np.testing.assert_array_equal((left @ wide).numpy(), product)


@pytest.mark.parametrize(("kind", "bound"), [("complex64", 3e-7), ("complex128", 2e-15)])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 100])
def test_inverse_roots_of_complex_numbers(kind, bound, n):
    rng = np.random.default_rng(n)
    z = (rng.standard_normal(n) + 1j * rng.standard_normal(n)) * 10.0 ** rng.integers(-9, 9, n)
    z[: n // 4] = z[: n // 4].real
    z[n // 4 : n // 3] = 1j * z[n // 4 : n // 3].imag
    z = z.astype(kind)
    found = torch.rsqrt(torch.from_numpy(z)).numpy()
    expected = np.array([1 / cmath.sqrt(complex(v)) for v in z])
    assert (
        np.abs(found - expected).max(initial=0, where=np.isfinite(expected)) <= bound * np.abs(expected).max()
    )
    np.testing.assert_allclose(found, expected, rtol=bound)
    edges = torch.tensor([0j, complex("inf"), complex("nan"), 1e-40 + 0j] * 20, dtype=getattr(torch, kind))
    alone = torch.stack([torch.rsqrt(v) for v in edges])
    torch.testing.assert_close(torch.rsqrt(edges), alone, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(64, 10), (3, 5, 7), (4, 3, 9, 11), (1, 1, 1), (2, 3, 0)])
def test_statistics_of_halves_by_channel(kind, shape):
    x = torch.linspace(-3, 5, 10_000).to(getattr(torch, kind))[: int(np.prod(shape))].reshape(shape)
    running = torch.zeros(shape[1]), torch.ones(shape[1])
    if x.numel() == 0:
        with pytest.raises(RuntimeError, match="at least one element"):
            torch.batch_norm_update_stats(x, *running, 0.5)
        return
    mean, variance = torch.batch_norm_update_stats(x, *running, 0.5)
    assert mean.dtype == variance.dtype == x.dtype
    dims = [0, *range(2, len(shape))]
    wide = x.double()
    bound = {"float16": 1e-3, "bfloat16": 8e-3}[kind]
    torch.testing.assert_close(mean.double(), wide.mean(dims), rtol=bound, atol=1e-3)
    torch.testing.assert_close(variance.double(), wide.var(dims, correction=0), rtol=bound, atol=1e-4)
    torch.testing.assert_close(running[0], mean.float() / 2)
    shifted, strided = torch.batch_norm_stats(x, 1e-3), torch.batch_norm_stats(x.mT.contiguous().mT, 1e-3)
    for ours, other in zip(shifted, strided):
        torch.testing.assert_close(ours, other, rtol=bound, atol=1e-3)
