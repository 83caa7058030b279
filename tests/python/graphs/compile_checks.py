"""What the tests of `torch.compile` share."""

import pytest

import rushlight as torch
from rushlight._inductor import config as inductor_config

X = torch.arange(12.0).view(3, 4) - 5


@pytest.fixture
def no_measuring(monkeypatch):
    """Graphs are used from the second call on, however slow they are."""
    monkeypatch.setattr(inductor_config, "measure", False)
    torch._dynamo.reset()


def compiled_of(fn):
    return fn._compiled if hasattr(fn, "_compiled") else fn.__dict__["_compiled"]


def graphs(fn):
    return len(compiled_of(fn).entries)


def check(function, *calls, graph=True):
    """The compiled function gives what the function gives, call by call; `calls` make arguments."""
    fast = torch.compile(function)
    for call in [*calls, *calls]:
        args = call() if callable(call) else call
        torch.testing.assert_close(fast(*args), function(*args), rtol=0, atol=0, equal_nan=True)
    assert (graphs(fast) > 0) == graph, compiled_of(fast).reason
    return fast
