"""`out=` beside `dtype=`: one of another type is refused, in PyTorch's words."""

import pytest

import rushlight as torch

FACTORIES = {
    "arange": (3,), "zeros": (3,), "full": ((3,), 1.0), "linspace": (0, 1, 3), "randperm": (3,),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORIES)
def test_factories(name):
    make, args = getattr(torch, name), FACTORIES[name]
    with pytest.raises(RuntimeError, match=r"dtype Long does not match dtype of out parameter \(Float\)"):
        make(*args, out=torch.empty(3), dtype=torch.int64)
    made = torch.empty(3, dtype=torch.int64)
    assert make(*args, out=made, dtype=torch.int64) is made


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "cumsum", "cumprod"])
def test_reductions(name):
    reduce, x = getattr(torch, name), torch.arange(6.0).reshape(2, 3)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got float instead"):
        reduce(x, 1, out=torch.empty(2), dtype=torch.float64)
    made = reduce(x, 1, out=torch.empty(0, dtype=torch.float64), dtype=torch.float64)
    torch.testing.assert_close(made, reduce(x.double(), 1))
    assert reduce(x, 1, out=torch.empty(0)).dtype == torch.float32
