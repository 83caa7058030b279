"""What compiled programs raise where the program itself is wrong."""

import pytest

import rushlight as torch
from rushlight._dynamo.exc import FailOnRecompileLimitHit, TorchRuntimeError, Unsupported
from rushlight.nn import functional as F

PAIR = torch.ones(2, 3), torch.ones(2, 4)

WRONG = {
    "product": lambda x, y: x @ y,
    "sum": lambda x, y: x + y,
    "joined": lambda x, y: torch.cat([x, y]),
    "reshaped": lambda x, y: x.reshape(4, -1),
    "layer": lambda x, y: F.linear(x, y),
    "labels": lambda x, y: F.cross_entropy(x, torch.zeros(5, dtype=torch.int64)),
    "one row": lambda x, y: F.batch_norm(x[:1], None, None, training=True),
    "determinant": lambda x, y: torch.det(x),
}


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_operators_that_fail(name, fullgraph):
    with pytest.raises((RuntimeError, ValueError)) as written:
        WRONG[name](*PAIR)
    fast = torch.compile(WRONG[name], backend="eager", fullgraph=fullgraph)
    for _ in range(2):  # the second call as the first
        with pytest.raises(TorchRuntimeError) as caught:
            fast(*PAIR)
        assert repr(str(written.value)) in str(caught.value)
        assert type(caught.value.__cause__) is type(written.value)


def test_wrong_calls_cost_no_graph():
    fast = torch.compile(lambda x, y: x @ y, backend="eager")
    right = torch.ones(2, 3), torch.ones(3, 2)
    fast(*right)
    for _ in range(3):
        with pytest.raises(TorchRuntimeError):
            fast(*PAIR)
    assert fast._compiled.reason is None and len(fast._compiled.entries) == 1
    assert fast(*right).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_what_the_program_raises_itself():
    def refuses(x, y):
        if x.shape != y.shape:
            raise RuntimeError("of another shape")
        return x + y

    with pytest.raises(RuntimeError, match="of another shape") as caught:
        torch.compile(refuses, backend="eager")(*PAIR)
    assert type(caught.value) is RuntimeError
    with pytest.raises(Unsupported, match="of another shape"):
        torch.compile(refuses, backend="eager", fullgraph=True)(*PAIR)
    for fullgraph in (False, True):
        with pytest.raises(IndexError, match="too many indices"):
            torch.compile(lambda x, y: x[0, 0, 0], backend="eager", fullgraph=fullgraph)(*PAIR)


class _Scaled(torch.nn.Module):
    def forward(self, x, scale):
        return x * scale


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("program", [lambda x, y: x + y, _Scaled()], ids=["function", "module"])
def test_wrong_arguments(program, fullgraph):
    fast = torch.compile(program, backend="eager", fullgraph=fullgraph)
    for args, kwargs in ((PAIR[:1], {}), (PAIR[:1] * 3, {}), (PAIR[:1] * 2, {"more": 1})):
        with pytest.raises(TypeError, match="argument"):
            fast(*args, **kwargs)
    assert fast(PAIR[0], PAIR[0]).shape == (2, 3)


def test_type_errors_within_the_program_have_no_graph():
    with pytest.raises(Unsupported, match="TypeError"):
        torch.compile(lambda x: len(3) + x, backend="eager", fullgraph=True)(PAIR[0])


def test_errors_that_the_program_catches():
    def tries(x, y):
        try:
            return x @ y
        except RuntimeError:
            return x + 1

    assert torch.compile(tries, backend="eager")(*PAIR).tolist() == [[2.0] * 3] * 2


def test_the_limit_of_graphs(monkeypatch):
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", 1)
    fast = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True, dynamic=False)
    fast(torch.ones(2))
    with pytest.raises(FailOnRecompileLimitHit, match="which is the limit"):
        fast(torch.ones(2, 2))


def test_mode_lite():
    x = torch.linspace(-1, 1, 7).requires_grad_()
    plain, fast = (x.sin() * x).exp(), torch.compile(lambda x: (x.sin() * x).exp(), mode="lite")(x)
    assert torch.equal(plain, fast)
    wanted = torch.autograd.grad(plain.sum(), x)[0]
    assert torch.equal(torch.autograd.grad(fast.sum(), x)[0], wanted)
    with torch.no_grad():
        assert torch.equal(torch.compile(lambda x: (x.sin() * x).exp(), mode="lite")(x), plain)
    assert "lite" in torch._inductor.list_mode_options()
    with pytest.raises(RuntimeError, match="should be one of: default, lite, reduce-overhead"):
        torch.compile(lambda x: x, mode="fast")
    with pytest.raises(RuntimeError, match="both can't be specified"):
        torch.compile(lambda x: x, mode="default", options={})
