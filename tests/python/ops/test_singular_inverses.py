"""`inv_ex` of singular matrices: infinite or not a number where PyTorch's is."""

import pytest

import rushlight

oracle = pytest.importorskip("torch")

MATRICES = {
    "two rows": [[1.0, 2], [2, 4]],
    "zeros": [[0.0] * 3] * 3,
    "counted": [[0.0, 1, 2], [3, 4, 5], [6, 7, 8]],
    "upper": [[1.0, 2, 3], [0, 0, 5], [0, 0, 6]],
    "a column of zeros": [[0.0, 2, 3], [0, 1, 5], [0, 3, 6]],
}


def same(mine, theirs):
    assert mine.info.tolist() == theirs.info.tolist()
    mine, theirs = mine.inverse.numpy(), theirs.inverse.numpy()
    assert mine == pytest.approx(theirs, rel=1e-5, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", MATRICES)
def test_one(name, dtype):
    def inverse(torch):
        return torch.linalg.inv_ex(torch.tensor(MATRICES[name], dtype=getattr(torch, dtype)))

    same(inverse(rushlight), inverse(oracle))


def test_among_regular_ones():
    """So many that the regular ones are inverted side by side in the lanes of registers."""

    def inverse(torch):
        a = torch.eye(3).repeat(40, 1, 1) * torch.arange(1.0, 41).view(-1, 1, 1)
        a[7] = 0
        a[21, 2] = 0
        return torch.linalg.inv_ex(a)

    same(inverse(rushlight), inverse(oracle))


def test_errors_stay():
    with pytest.raises(rushlight.linalg.LinAlgError, match="singular"):
        rushlight.linalg.inv_ex(rushlight.zeros(2, 2), check_errors=True)
