"""Products with a vector, which read the matrix where it lies, beside those of doubles."""

import itertools

import pytest

import rushlight as torch

# columns and rows of the matrix: less than a register, ends of all lengths, short rows beyond caches
SIZES = [(1, 1), (3, 5), (17, 9), (64, 33), (100, 130), (515, 64), (768, 3001), (4100, 7)]


@pytest.mark.parametrize(
    ("dtype", "sizes", "turned"),
    itertools.product([torch.bfloat16, torch.float16, torch.float32], SIZES, [False, True]),
)
def test_as_in_doubles(dtype, sizes, turned):
    inner, rows = sizes
    torch.manual_seed(inner)
    matrix = torch.randn(rows, inner).to(dtype)
    if turned:
        matrix = matrix.t().contiguous().t()
    x, bias = torch.randn(inner).to(dtype), torch.randn(rows).to(dtype)
    exact = matrix.double() @ x.double()
    bound = {torch.bfloat16: 1e-2, torch.float16: 1.5e-3, torch.float32: 1e-5}[dtype] * (1 + inner**0.5)
    for found in (
        torch.mv(matrix, x),
        x @ matrix.t(),
        torch.nn.functional.linear(x[None], matrix)[0],
        torch.bmm(matrix.expand(3, rows, inner), x.expand(3, inner)[..., None])[2, :, 0],
    ):
        assert found.dtype == dtype
        assert (found.double() - exact).abs().max() <= bound
    three = torch.nn.functional.linear(torch.stack([-x, x, x]), matrix)[1]
    assert (three.double() - exact).abs().max() <= bound
    found = torch.nn.functional.linear(x[None], matrix, bias)[0]
    assert (found.double() - exact - bias.double()).abs().max() <= bound


def test_what_lies_behind_a_row_is_not_read():
    """Rows of a wider matrix, whose other columns are NaN."""
    wide = torch.full((70, 200), float("nan"), dtype=torch.bfloat16)
    wide[:, :77] = torch.randn(70, 77).bfloat16()
    x = torch.randn(77).bfloat16()
    assert torch.mv(wide[:, :77], x).isfinite().all()
