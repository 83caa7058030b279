"""`linalg._powsum`: the sum of powers of magnitudes, a norm without its root."""

import pytest

import rushlight

oracle = pytest.importorskip("torch")


def test_sums_of_powers():
    x = [[1.0, -2.0], [0.0, 4.0]]
    for order in (0, 1, 2, 3, 0.5, -1, float("inf")):
        for options in ({}, {"dim": 1, "keepdim": True}, {"dim": (0, 1)}, {"dtype": "float64"}):

            def of(torch, order=order, options=options):
                named = {k: getattr(torch, v) if k == "dtype" else v for k, v in options.items()}
                return torch.linalg._powsum(torch.tensor(x), order, **named)

            mine, theirs = of(rushlight), of(oracle)
            assert mine.numpy().dtype == theirs.numpy().dtype
            assert mine.numpy() == pytest.approx(theirs.numpy(), rel=1e-6)
    assert rushlight.ops.aten.linalg__powsum(rushlight.tensor([3 + 4j]), 2).item() == 25
    with pytest.raises(NotImplementedError, match="powsum_cpu"):
        rushlight.linalg._powsum(rushlight.tensor([1]))
