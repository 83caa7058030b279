"""What contains itself, or is nested deeper than Python goes, ends in an error that leaves nothing behind."""

import sys

import pytest

import rushlight as rl
from rushlight import nn


def depth():
    """How deep the interpreter believes to be."""
    limit = sys.getrecursionlimit()
    for n in range(1, limit):
        try:
            sys.setrecursionlimit(n)
        except RecursionError:
            continue
        sys.setrecursionlimit(limit)
        return n
    return limit


def looped_module():
    module = nn.Sequential(nn.Linear(2, 2))
    module._modules["again"] = module
    return module


def deep_module():
    module = nn.Linear(2, 2)
    for _ in range(1200):
        module = nn.Sequential(module)
    return module


WALKS = {
    "state_dict": lambda m: m.state_dict(),
    "train": lambda m: m.train(),
    "call": lambda m: m(rl.ones(2)),
    "to": lambda m: m.to(rl.float64),
    "apply": lambda m: m.apply(lambda part: None),
    "repr": repr,
    "zero_grad": lambda m: m.zero_grad(),
    "parameters": lambda m: list(m.parameters()),
    "named_modules": lambda m: dict(m.named_modules(remove_duplicate=False)),
    "trace": lambda m: rl.jit.trace(m, rl.ones(2)),
    "export": lambda m: rl.export.export(m, (rl.ones(2),)),
}
WALKS_IN_C = {"state_dict", "train", "zero_grad", "parameters", "named_modules"}


@pytest.mark.parametrize("make", [looped_module, deep_module])
@pytest.mark.parametrize("walk", WALKS)
def test_modules(make, walk):
    module = make()
    before = depth()
    try:
        WALKS[walk](module)
    except RecursionError:
        pass
    else:  # from Python 3.12 on, calls in C have a depth of their own, which 1200 modules do not reach
        in_c = sys.version_info >= (3, 12) and walk in WALKS_IN_C
        assert in_c if make is deep_module else walk in ("zero_grad", "parameters"), walk
    assert depth() == before
    assert nn.Linear(2, 2).state_dict().keys() == {"weight", "bias"}


def test_backward_that_runs_itself():
    class Again(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            with rl.enable_grad():
                Again.apply(rl.ones(2, requires_grad=True)).sum().backward()
            return g

    before = depth()
    with pytest.raises(RuntimeError, match="run one within the other"):
        Again.apply(rl.ones(2, requires_grad=True)).sum().backward()
    assert depth() == before
    x = rl.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize(
    "schema",
    [
        "", "f", "f(", "f(Tensor a", "f(Tensor a)", "f(Tensor a) -> ", "f(TENSOR a) -> ()",
        "f(Tensor[][][] a) -> ()", "f(Tensor a=1.5.) -> ()", "f(int a=x) -> ()",
        "f(Tensor a) -> Tensor b c d",
        "f(bool[9999999999999999999999] a) -> ()", "f(ScalarType a=no) -> ()", "f(MemoryFormat a=no) -> ()",
        "f(Tensor(a! a) -> ()", "f((Tensor a)) -> ()",
    ],
)  # fmt: skip
def test_schemas_that_cannot_be_read(schema):
    with pytest.raises((RuntimeError, ValueError)) as raised:
        rl.library.Library("damaged", "FRAGMENT").define(schema)
    assert "schema" in str(raised.value) and ".cpp" not in str(raised.value)
