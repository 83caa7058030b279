"""Products with kernels of their own: batches of small matrices, halves by a vector; and signs of halves. Of
whole numbers, which are exact in any order."""

import numpy as np
import pytest

import rushlight as torch


def numbers(rng, *shape):
    return rng.integers(-2, 3, shape).astype(np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (8, 8, 8), (3, 5, 7), (16, 16, 16), (13, 9, 2), (6, 17, 4), (2, 3, 17)]
)
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_batches_of_small_matrices(dtype, sizes, turned):
    rng, kind, batch = np.random.default_rng(0), getattr(torch, dtype), 70
    m, n, k = sizes
    x, y, z = numbers(rng, batch, m, k), numbers(rng, batch, k, n), numbers(rng, batch, m, n)
    a, b = (
        torch.tensor(t.swapaxes(1, 2).copy() if turn else t, dtype=kind) for t, turn in zip((x, y), turned)
    )
    a, b = (t.transpose(1, 2) if turn else t for t, turn in zip((a, b), turned))
    np.testing.assert_array_equal((a @ b).numpy(), x @ y)
    into = torch.tensor(z, dtype=kind)
    np.testing.assert_array_equal(torch.baddbmm(into, a, b, beta=-1, alpha=2).numpy(), 2 * (x @ y) - z)
    nothing = torch.full_like(into, float("nan"))
    np.testing.assert_array_equal(torch.baddbmm(nothing, a, b, beta=0, alpha=3).numpy(), 3 * (x @ y))
    wide = torch.zeros(batch, m, 2 * n, dtype=kind)
    torch.bmm(a, b, out=wide[:, :, :n])
    np.testing.assert_array_equal(wide[:, :, :n].numpy(), x @ y)
    assert wide[:, :, n:].count_nonzero() == 0


def test_small_matrices_keep_what_is_not_finite():
    a, b = torch.zeros(4096, 3, 5), torch.ones(4096, 5, 6)
    a[7, 1, 2], b[9, 0, 3] = float("inf"), float("nan")
    found = a @ b
    assert found[7, 1].tolist() == [float("inf")] * 6 and found[9, :, 3].isnan().all()
    assert found.isfinite().sum() == found.numel() - 6 - 3


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("outputs, inner", [(1, 1), (7, 33), (64, 32), (130, 250), (71, 5)])
@pytest.mark.parametrize("layout", ["rows", "columns", "every second"])
def test_halves_by_a_vector(dtype, outputs, inner, layout):
    rng, kind = np.random.default_rng(1), getattr(torch, dtype)
    x, w, bias = numbers(rng, inner), numbers(rng, outputs, inner), numbers(rng, outputs)
    if layout == "rows":
        matrix = torch.tensor(w, dtype=kind)
    elif layout == "columns":
        matrix = torch.tensor(w.T.copy(), dtype=kind).t()
    else:
        matrix = torch.tensor(np.repeat(np.repeat(w, 2, 0), 2, 1), dtype=kind)[::2, ::2]
    vector, start = torch.tensor(x, dtype=kind), torch.tensor(bias, dtype=kind)
    second = torch.tensor(np.repeat(x, 3), dtype=kind)[::3]
    for v in (vector, second):
        np.testing.assert_array_equal((matrix @ v).double().numpy(), w @ x)
        np.testing.assert_array_equal((v[None] @ matrix.t()).double().numpy()[0], w @ x)
        np.testing.assert_array_equal((matrix @ v[:, None]).double().numpy()[:, 0], w @ x)
    row = torch.nn.functional.linear(vector[None], matrix, start)
    np.testing.assert_array_equal(row.double().numpy()[0], w @ x + bias)
    scaled = torch.addmv(start, matrix, vector, beta=-2, alpha=2)
    np.testing.assert_array_equal(scaled.double().numpy(), 2 * (w @ x) - 2 * bias)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_signs_of_halves_are_bits(dtype):
    bits = np.arange(2**16).astype(np.uint16).view(np.int16)
    x = torch.from_numpy(bits).view(getattr(torch, dtype))
    for of in (x, x.view(256, 256).t(), x[3:], x[1::3]):
        given = of.contiguous().view(torch.int16).numpy()
        np.testing.assert_array_equal(of.abs().contiguous().view(torch.int16).numpy(), given & 0x7FFF)
        np.testing.assert_array_equal((-of).contiguous().view(torch.int16).numpy(), given ^ -0x8000)
    y = x.clone().neg_()
    assert torch.equal(y.view(torch.int16), (-x).view(torch.int16))
