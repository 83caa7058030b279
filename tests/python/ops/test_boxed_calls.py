"""What calls of `torch.ops` take and refuse: PyTorch's rules for them are not those of its functions."""

from collections.abc import Sequence

import pytest

import rushlight as torch
from rushlight import _C
from rushlight._command.names import is_aliased

_COMPOSITE = "CompositeImplicitAutograd"


class Numbers(Sequence):
    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def define(lib):
    """Operators of `boxed` in one library or the other."""
    lib.define("scale(Tensor x, int n=1, *, bool negative=False) -> Tensor")
    lib.impl("scale", lambda x, n=1, *, negative=False: x * (-n if negative else n), _COMPOSITE)
    lib.define("total(Tensor[] xs, int[] numbers, float? shift, str how) -> Tensor")
    lib.impl("total", lambda xs, numbers, shift, how: sum(xs) + sum(numbers), _COMPOSITE)
    lib.define("twice(Tensor x) -> Tensor")
    lib.define("twice.two(Tensor x, Tensor y) -> Tensor")


@pytest.fixture
def ops():
    lib = torch.library.Library("boxed", "DEF")
    define(lib)
    yield torch.ops.boxed
    lib._destroy()


REFUSED = [
    lambda ops, x: ops.scale(1.0),
    lambda ops, x: ops.scale("s"),
    lambda ops, x: ops.scale.default(1.0),
    lambda ops, x: ops.scale(x, "s"),
    lambda ops, x: ops.scale(x, 1.5),
    lambda ops, x: ops.scale(),
    lambda ops, x: ops.scale(x, 1, 2),
    lambda ops, x: ops.scale(x, 1, True, 2),
    lambda ops, x: ops.scale(x, x=x),
    lambda ops, x: ops.scale(x, foo=1),
    lambda ops, x: ops.total(x, [1], None, "a"),
    lambda ops, x: ops.total([x], [1.5], None, "a"),
    lambda ops, x: ops.total([x], 1, None, "a"),
    lambda ops, x: ops.total([x, 1.0], [1], None, "a"),
    lambda ops, x: ops.total([x], [1], "b", "a"),
    lambda ops, x: ops.total([x], [1], 2, 3),
    lambda ops, x: ops.twice(),
    lambda ops, x: ops.twice(x, 1),
    lambda ops, x: ops.scale(x, type(x)([1.0, 2.0])),
]
TAKEN = [
    lambda ops, x: ops.scale(x, True),
    lambda ops, x: ops.scale(x, 2, negative=3),
    lambda ops, x: ops.scale(x, negative=0),
    lambda ops, x: ops.total([x], Numbers(1, 2), None, "a"),
    lambda ops, x: ops.total(Numbers(x, x), Numbers(1, 2), 1, "a"),
    lambda ops, x: ops.total((x,), [True], 1.5, how="a"),
    lambda ops, x: ops.scale(x, x[1]),
    lambda ops, x: torch.ops.aten.native_layer_norm(x, [2], None, None, 0.125 * x[:1])[1],
]


@pytest.mark.parametrize("i", range(len(TAKEN)))
def test_what_is_converted(ops, i):
    expected = [[1.0, 2.0], [-2.0, -4.0], [1.0, 2.0], [4.0, 5.0], [5.0, 7.0], [2.0, 3.0], [2.0, 4.0], [1.5]]
    assert TAKEN[i](ops, torch.tensor([1.0, 2.0])).tolist() == expected[i]


def words(call, ops, x):
    with pytest.raises(RuntimeError) as caught:
        call(ops, x)
    lines = str(caught.value).splitlines()
    return [line for line in lines if not line.startswith("Cast error details")]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_words_of_refusals(ops, i):
    if is_aliased():
        pytest.skip("torch is this library here")
    oracle = pytest.importorskip("torch")
    lib = oracle.library.Library("boxed", "DEF")
    try:
        define(lib)
        theirs = words(REFUSED[i], oracle.ops.boxed, oracle.ones(2))
    finally:
        lib._destroy()
    assert words(REFUSED[i], ops, torch.ones(2)) == theirs


def test_own_errors_of_a_kernel_stay():
    lib = torch.library.Library("boxed_errors", "DEF")

    def kernel(x):
        raise TypeError("of the kernel")

    lib.define("fails(Tensor x) -> Tensor")
    lib.impl("fails", kernel, _COMPOSITE)
    with pytest.raises(TypeError, match="of the kernel"):
        torch.ops.boxed_errors.fails(torch.ones(2))
    lib._destroy()


def test_built_in_operators():
    with pytest.raises(RuntimeError, match=r"aten::relu\(\) is missing value for argument 'self'"):
        torch.ops.aten.relu()
    with pytest.raises(RuntimeError, match=r"expected at most 1 argument\(s\) but received 2"):
        torch.ops.aten.relu(1, 2)
    assert torch.ops.aten.view.default(torch.ones(2), Numbers(2, 1)).shape == (2, 1)
    assert torch.ops.aten.add(1, 2).item() == 3  # numbers stand for tensors in these


def test_the_overload_that_a_call_would_take():
    x = torch.ones(3)
    assert _C._jit_resolve_packet("aten::sum", x) == "default"
    assert _C._jit_resolve_packet("aten::sum", x, dim=1) == "dim_IntList"
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        _C._jit_resolve_packet("aten::sum", x, x, x)
