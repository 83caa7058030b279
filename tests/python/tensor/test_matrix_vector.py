"""Products of a matrix and a vector, of small matrices, and of vectors: values at every kind of size."""

import itertools

import numpy as np
import pytest

import rushlight as torch

SHARES = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2, torch.float16: 2e-3}
LENGTHS = (1, 2, 7, 10, 16, 31, 33, 64, 100, 1000)


def amid_nans(matrix):
    """The same matrix with NaN behind its rows: nothing there may count."""
    rows, columns = matrix.shape
    around = torch.full((rows + 1, columns + 3), float("nan"), dtype=matrix.dtype)
    around[:rows, :columns] = matrix
    return around[:rows, :columns]


def agree(result, matrix, vector, share):
    exact = matrix.double().numpy() @ vector.double().numpy()
    scale = (abs(matrix.double().numpy()) @ abs(vector.double().numpy())).max()
    assert abs(result.double().numpy() - exact).max() <= share * scale


@pytest.mark.parametrize("dtype", SHARES, ids=str)
@pytest.mark.parametrize("outputs", [1, 3, 5, 17, 257, 700])
def test_products_with_a_vector(dtype, outputs):
    torch.manual_seed(0)
    for inner in LENGTHS:
        vector = torch.randn(inner).to(dtype)
        by_rows = torch.randn(outputs, inner).to(dtype)
        by_columns = torch.randn(inner, outputs).to(dtype)
        for matrix in (by_rows, amid_nans(by_rows)):
            agree(matrix.mv(vector), matrix, vector, SHARES[dtype])
        for matrix in (by_columns, amid_nans(by_columns)):
            agree(vector @ matrix, matrix.t(), vector, SHARES[dtype])


def test_long_sums_are_cut_and_joined():
    torch.manual_seed(0)
    tall, vector = torch.randn(400_000, 3), torch.randn(400_000)
    agree(vector @ tall, tall.t(), vector, 1e-5)
    agree(tall.t().contiguous().mv(vector), tall.t(), vector, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_small_products(dtype):
    torch.manual_seed(0)
    for rows, columns, inner in itertools.product((2, 3, 7, 17, 33, 64), repeat=3):
        a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(inner, columns, dtype=dtype)
        c = torch.randn(rows, columns, dtype=dtype)
        exact = a.double().numpy() @ b.double().numpy()
        for x in (a, a.t().contiguous().t()):
            for y in (b, b.t().contiguous().t()):
                assert np.allclose((x @ y).numpy(), exact, rtol=0, atol=1e-4)
                sum_ = torch.addmm(c, x, y, alpha=2, beta=0.5)
                assert np.allclose(sum_.numpy(), 2 * exact + c.numpy() / 2, rtol=0, atol=2e-4)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("n", [0, 1, 3, 8, 17, 100, 40_001])
def test_dots_of_complex_vectors(dtype, n):
    torch.manual_seed(0)
    x, y = torch.randn(n, dtype=dtype), torch.randn(n, dtype=dtype)
    a, b = (v.numpy().astype(np.complex128) for v in (x, y))
    assert np.allclose(torch.dot(x, y).item(), np.dot(a, b), rtol=1e-5, atol=1e-3)
    assert np.allclose(torch.vdot(x, y).item(), np.vdot(a, b), rtol=1e-5, atol=1e-3)


def test_dots_of_one_number_again_and_again():
    assert (torch.ones(5) @ torch.tensor(2.0).expand(5)).item() == 10


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("length", [2047, 2048, 2049, 4097, 70001])
def test_dots_of_long_halves(length, dtype):
    values = np.random.default_rng(length).standard_normal((2, length)).astype("float32")
    x, y = (torch.from_numpy(v).to(getattr(torch, dtype)) for v in values)
    products = x.double() * y.double()
    for result in (torch.dot(x, y), torch.vdot(y, x)):
        error = abs(result.item() - products.sum().item())
        rounding = 2.0 ** (-8 if dtype == "bfloat16" else -11) * abs(products.sum().item())
        assert error <= rounding + 1e-6 * products.abs().sum().item()
