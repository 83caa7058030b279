"""Operators whose derivative PyTorch refuses in the backward pass: a loss may not lose a part unseen."""

import pytest

import rushlight as rl
from rushlight._command.names import is_aliased


def spd(lib):
    return lib.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=lib.float64)


REFUSED = {
    "floor_divide": lambda lib, x: x // 2,
    "floor_divide of a number": lambda lib, x: 7 // (x + 5),
    "geqrf": lambda lib, x: lib.geqrf(x)[0],
    "geqrf, factors": lambda lib, x: lib.geqrf(x)[1],
    "histogram": lambda lib, x: lib.histogram(x, 3)[0],
    "histogramdd": lambda lib, x: lib.histogramdd(x, [2, 2])[0],
    "ldl_factor": lambda lib, x: lib.linalg.ldl_factor(x)[0],
    "ldl_solve": lambda lib, x: lib.linalg.ldl_solve(*lib.linalg.ldl_factor(spd(lib)), x),
    "heaviside": lambda lib, x: lib.heaviside(x, lib.ones_like(x)),
    "scatter with multiply": lambda lib, x: lib.zeros_like(x).scatter(
        0, lib.tensor([[0, 1], [0, 0]]), x, reduce="multiply"
    ),
    "scatter_ of a number": lambda lib, x: x.clone().scatter_(0, lib.tensor([[0]]), 2.0, reduce="add"),
    "bincount of weights": lambda lib, x: lib.bincount(lib.tensor([0, 2, 2, 1]), x.flatten()),
    "unique": lambda lib, x: lib.unique(x),
    "unique_consecutive": lambda lib, x: lib.unique_consecutive(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_backward_pass_refuses(name):
    x = spd(rl).requires_grad_()
    part = REFUSED[name](rl, x)
    assert part.requires_grad
    with pytest.raises(NotImplementedError, match="derivative for .* is not implemented"):
        (part.sum() + x.sum()).backward()
    with rl.no_grad():
        assert not REFUSED[name](rl, x).requires_grad


@pytest.mark.skipif(is_aliased(), reason="import torch is this library")
@pytest.mark.parametrize("name", REFUSED)
def test_pytorch_refuses_the_same(name):
    torch = pytest.importorskip("torch")
    x = spd(torch).requires_grad_()
    part = REFUSED[name](torch, x)
    with pytest.raises(RuntimeError, match="derivative for .* is not implemented"):
        (part.sum() + x.sum()).backward()
    assert REFUSED[name](rl, spd(rl)).tolist() == part.tolist()
