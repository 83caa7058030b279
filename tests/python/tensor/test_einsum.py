"""einsum and bilinear of integers."""

import pytest

import rushlight as torch

oracle = pytest.importorskip("torch")


def test_integer_sums_of_einsum_and_bilinear_have_pytorchs_dtypes():
    def program(m):
        x = m.ones(2, 3, dtype=m.int32)
        cube = m.ones(1, 3, 1, dtype=m.int32)
        weight = m.ones(2, 3, 3, dtype=m.int32)
        results = [m.einsum("ij->i", x), m.einsum("iji->j", cube), m.einsum("ij,ij->i", x, x)]
        return [str(r.dtype).split(".")[1] for r in (*results, m.nn.functional.bilinear(x, x, weight))]

    assert program(torch) == program(oracle)


def test_integer_sums_widen_operands_of_einsum():
    x = torch.ones(2, 3, dtype=torch.int32)
    assert torch.einsum("ij,k->jk", x, x[0]).dtype == torch.int64
    assert torch.einsum("ij,ik->k", x, x).tolist() == [6, 6, 6]
    with pytest.raises(RuntimeError):
        torch.einsum("ij,kj->ik", x, x.double())
