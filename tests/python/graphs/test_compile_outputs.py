"""Programs that return several tensors, dicts or dataclasses: forward and backward pass are graphs too."""

import dataclasses
from collections import OrderedDict, namedtuple

import pytest
from compile_checks import compiled_of, no_measuring  # noqa: F401

import rushlight as torch
from rushlight import nn

F = torch.nn.functional

pytestmark = pytest.mark.usefixtures("no_measuring")


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor | None = None
    name: str = "model"


@dataclasses.dataclass
class Listed(OrderedDict):
    """As large libraries return: attributes and items."""

    logits: torch.Tensor = None
    loss: torch.Tensor = None
    cache: tuple = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)


Pair = namedtuple("Pair", "logits loss")


class Model(nn.Module):
    def __init__(self, pack):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 5))
        self.pack = pack

    def forward(self, x, y):
        logits = self.body(x)
        return self.pack(logits, F.cross_entropy(logits, y))


PACKS = {
    "tuple": (lambda a, b: (a, b), lambda r: r),
    "list": (lambda a, b: [b, a], lambda r: r[::-1]),
    "dict": (lambda a, b: {"logits": a, "loss": b}, lambda r: (r["logits"], r["loss"])),
    "namedtuple": (Pair, lambda r: r),
    "dataclass": (Output, lambda r: (r.logits, r.loss)),
    "items": (lambda a, b: Listed(a, b, (a,)), lambda r: (r["logits"], r["loss"])),
}


def gradients(model, run, backward):
    model.zero_grad()
    backward(run)
    return [p.grad.clone() for p in model.parameters()]


@pytest.fixture
def joints(monkeypatch):
    """How many nodes of autograd each program became."""
    from rushlight._inductor import compile_fx as _  # noqa: F401
    from rushlight._inductor._joint import Joint

    made, connect = [], Joint.connect

    def watched(self, compiled):
        made.append(len(self.steps))
        return connect(self, compiled)

    monkeypatch.setattr(Joint, "connect", watched)
    return made


@pytest.mark.parametrize("kind", PACKS)
def test_logits_and_loss(kind, joints):
    pack, unpack = PACKS[kind]
    model = Model(pack)
    fast = torch.compile(model)
    x, y = torch.randn(4, 6), torch.randint(0, 5, (4,))

    def by_loss(run):
        unpack(run(x, y))[1].backward()

    def by_logits(run):
        unpack(run(x, y))[0].square().sum().backward()

    def by_both(run):
        logits, loss = unpack(run(x, y))
        (logits.exp().mean() + loss * 3).backward()

    for backward in [by_loss, by_loss, by_logits, by_both]:
        ours, theirs = gradients(model, fast, backward), gradients(model, model, backward)
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
        result, expected = fast(x, y), model(x, y)
        assert type(result) is type(expected)
        for a, b in zip(unpack(result), unpack(expected)):
            torch.testing.assert_close(a, b)
    assert joints == [2]


def test_records_are_what_their_class_makes(joints):
    model = Model(lambda a, b: Listed(a, b, (a, a * 2)))
    result = torch.compile(model)(torch.randn(4, 6), torch.randint(0, 5, (4,)))
    assert list(result) == ["logits", "loss", "cache"] and result.logits is result["logits"]
    assert result.cache[0] is result.logits
    model = Model(Output)
    result = torch.compile(model)(torch.randn(4, 6), torch.randint(0, 5, (4,)))
    assert result.name == "model" and dataclasses.fields(result)[0].name == "logits"


def test_gradients_in_between():
    """The gradient of a result of which another is computed: kept, hooked, or asked for."""
    model = Model(lambda a, b: (a, b))
    fast = torch.compile(model)
    x, y = torch.randn(4, 6), torch.randint(0, 5, (4,))
    for _ in range(2):
        found = []
        for run in (fast, model):
            model.zero_grad()
            logits, loss = run(x, y)
            logits.retain_grad()
            seen = []
            logits.register_hook(lambda g, seen=seen: seen.append(g) or g * 2)
            (asked,) = torch.autograd.grad(loss, logits, retain_graph=True)
            loss.backward()
            found.append([asked, logits.grad, *seen, *(p.grad.clone() for p in model.parameters())])
        torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


def test_second_gradients():
    model = Model(lambda a, b: (a, b))
    fast = torch.compile(model)
    x, y = torch.randn(4, 6, requires_grad=True), torch.randint(0, 5, (4,))
    found = []
    for run in (fast, model):
        _, loss = run(x, y)
        (first,) = torch.autograd.grad(loss, x, create_graph=True)
        found.append(
            [first, *torch.autograd.grad(first.square().sum(), [x, *model.parameters()], allow_unused=True)]
        )
    for a, b in zip(*found):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def chain(a):
    b = a.exp()
    return a, b, (b * 2).sum(-1).mean()


def two_ways(a):
    b = a.exp()
    return a, b, (a * b).sum(-1).mean()


def from_two(a):
    return a, (b := a.exp()), (c := a.sin()), (b * c).mean()


@pytest.mark.parametrize("rest, nodes", [(chain, [3]), (two_ways, []), (from_two, [4])])
def test_chains_of_results(rest, nodes, joints):
    weight = nn.Parameter(torch.randn(5, 5))

    def f(x):
        return rest((x @ weight).tanh())

    fast = torch.compile(f)
    x = torch.randn(3, 5, requires_grad=True)
    for pick in ([2], [0, 2], [1], [0, 1, 2]):
        found = []
        for run in (fast, f):
            results = run(x)
            total = sum(results[i].square().sum() * (i + 1) for i in pick)
            total = total + results[-1]
            found.append(torch.autograd.grad(total, [x, weight]))
        torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)
    assert joints == nodes


def test_a_result_that_also_needs_inputs():
    """Where gradients of a result come to inputs past the other result, operators record themselves."""
    weight = nn.Parameter(torch.randn(5))

    def f(x):
        a = x * weight
        return a, (a * weight).sum()

    fast = torch.compile(f)
    x = torch.randn(3, 5, requires_grad=True)
    for _ in range(3):
        found = []
        for run in (fast, f):
            a, total = run(x)
            found.append(torch.autograd.grad(total + a.square().sum(), [x, weight]))
        torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


def test_one_result_twice():
    fast = torch.compile(lambda x: (x * 2,) * 2)
    for _ in range(3):
        a, b = fast(torch.ones(3, requires_grad=True))
        assert a is b
