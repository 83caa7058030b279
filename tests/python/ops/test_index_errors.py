"""Positions that name nothing, and operands that do not fit: the kind of error and its words, as PyTorch."""

import pytest

import rushlight

CASES = {
    "matrix": lambda t: t.zeros(2, 3).index_add_(0, t.tensor([5]), t.ones(1, 3)),
    "negative": lambda t: t.zeros(2, 3).index_add(1, t.tensor([1, -1]), t.ones(2, 2)),
    "vector": lambda t: t.zeros(3).index_add_(0, t.tensor([7]), t.ones(1)),
    "number": lambda t: t.zeros(()).index_add_(0, t.tensor([1]), t.ones(1)),
    "dtypes": lambda t: t.zeros(3, dtype=t.int64).index_add_(0, t.tensor([1]), t.ones(1)),
    "along all": lambda t: t.take_along_dim(t.arange(6.0).reshape(2, 3), t.tensor([-1, 0])),
    "complex range": lambda t: t.linspace(0j, 1, 3, dtype=t.float32),
}


def refusal(function, module):
    with pytest.raises((RuntimeError, IndexError)) as caught:
        function(module)
    return type(caught.value), str(caught.value).removeprefix("torch.")


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name):
    torch = pytest.importorskip("torch")
    assert refusal(CASES[name], rushlight) == refusal(CASES[name], torch)


def test_nothing_is_added_before_the_error():
    x = rushlight.zeros(2, 3)
    with pytest.raises(RuntimeError, match="^index 5 is out of bounds for dimension 0 with size 2"):
        x.index_add_(0, rushlight.tensor([0, 5]), rushlight.ones(2, 3))
    assert x.sum() == 0


def test_negative_positions_along_a_dimension_count_from_the_end():
    x = rushlight.arange(6.0).reshape(2, 3)
    assert rushlight.take_along_dim(x, rushlight.tensor([[-1]]), 1).tolist() == [[2.0], [5.0]]


@pytest.mark.parametrize("shape, dim", [((5000,), 0), ((40, 3000), 1), ((3000, 40), 0)])
@pytest.mark.parametrize("layout", ["dense", "strided", "expanded"])
def test_every_position_of_gather_and_scatter_is_looked_at(shape, dim, layout):
    x = rushlight.randn(shape)
    index = rushlight.randint(0, shape[dim], shape)
    if layout == "strided":
        index = index.repeat_interleave(2, -1)[..., ::2]
    elif layout == "expanded":
        index = index.select(1 - dim, 0).unsqueeze(1 - dim).expand(shape) if len(shape) > 1 else index
    grid = [
        rushlight.arange(n).reshape([-1 if d == i else 1 for d in range(len(shape))])
        for i, n in enumerate(shape)
    ]
    grid[dim] = index
    assert rushlight.equal(x.gather(dim, index), x[tuple(grid)])
    for wrong in (-1, shape[dim]):
        bad = index.clone() if layout == "dense" else index
        bad[(-1,) * len(shape)] = wrong
        for refused in (x.gather, lambda d, i: x.scatter(d, i, x), lambda d, i: x.scatter_add(d, i, x)):
            with pytest.raises(
                (RuntimeError, IndexError), match=f"index {wrong} is out of bounds for dimension"
            ):
                refused(dim, bad)
        written = x.clone()
        with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
            written.scatter_(dim, bad, 0.0)
        assert rushlight.equal(written, x)
