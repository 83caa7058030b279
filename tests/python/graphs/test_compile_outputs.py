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


@pytest.mark.parametrize("rest, nodes", [(chain, [3]), (two_ways, [1]), (from_two, [4])])
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


WEIGHT = nn.Parameter(torch.randn(5, 5, generator=torch.Generator().manual_seed(0)))


def cached(x):
    """Like a language model that returns its cache: of what it returns, some is needed on the way."""
    h = (x @ WEIGHT).tanh()
    key = h.sin()
    value = key * h
    logits = (value @ WEIGHT).cos()
    return logits, key, value, (logits * 2).sum()


def kept(x, logits, key, value, loss):
    key.retain_grad(), value.retain_grad()
    (loss + key.sum()).backward()
    return x.grad, WEIGHT.grad, key.grad, value.grad


def hooked(x, logits, key, value, loss):
    seen = []
    for t, factor in ((key, 2), (value, 3), (logits, 5)):
        t.register_hook(lambda g, factor=factor: seen.append(g) or g * factor)
    loss.backward()
    return x.grad, WEIGHT.grad, *seen


def hooked_above(x, logits, key, value, loss):
    seen = []
    value.register_hook(seen.append)
    value.sum().backward()
    return x.grad, WEIGHT.grad, *seen


def asked(x, logits, key, value, loss):
    some = torch.autograd.grad(loss, [key, WEIGHT], retain_graph=True)
    return *some, *torch.autograd.grad(loss + logits.sum(), [x, value, logits, key])


def given_as_inputs(x, logits, key, value, loss):
    loss.backward(inputs=[key, WEIGHT])
    assert x.grad is None
    return key.grad, WEIGHT.grad


def again_and_again(x, logits, key, value, loss):
    loss.backward(retain_graph=True)
    key.sum().backward(retain_graph=True)
    key.retain_grad()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    return x.grad, WEIGHT.grad, key.grad


def twice_differentiated(x, logits, key, value, loss):
    key.register_hook(lambda g: g * 2)
    value.retain_grad()
    first = torch.autograd.grad(loss, [x, key], create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), [x, WEIGHT])
    return *first, *second, value.grad


def in_a_batch(x, logits, key, value, loss):
    seeds = torch.stack([torch.ones_like(logits), logits.detach()])
    return torch.autograd.grad(logits, [x, key], seeds, is_grads_batched=True)


WATCHED = [
    kept, hooked, hooked_above, asked, given_as_inputs, again_and_again, twice_differentiated, in_a_batch
]  # fmt: skip


@pytest.mark.parametrize("watch", WATCHED)
def test_results_on_the_way_to_others(watch):
    fast = torch.compile(cached)
    for _ in range(2):
        found = []
        for run in (fast, cached):
            x, WEIGHT.grad = torch.linspace(-1, 1, 15).view(3, 5).requires_grad_(), None
            results = run(x)
            assert (results[1].grad_fn.name() == "CompiledFunctionBackward") == (run is fast)
            found.append([t.detach() for t in watch(x, *results)])
        torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


def test_a_later_result_has_no_gradient_by_an_earlier_one():
    logits, key, *_ = torch.compile(cached)(torch.ones(3, 5, requires_grad=True))
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(key.sum(), logits)


def test_results_with_nothing_in_common(joints):
    """Each has a pass of its own, that may run when the other's has."""
    fast = torch.compile(lambda x, y: (x * WEIGHT, y.exp(), (x + 1).sin()))
    x, y = torch.ones(5, requires_grad=True), torch.ones(5, requires_grad=True)
    for _ in range(2):
        x.grad = y.grad = None
        for result in fast(x, y):
            result.sum().backward()
        torch.testing.assert_close(x.grad, WEIGHT.detach().sum(0) + torch.full((5,), 2.0).cos())
        torch.testing.assert_close(y.grad, torch.ones(5).exp())
    assert joints == [3]


def test_second_gradients_where_an_input_is_computed_from_another():
    found = []
    for run in (torch.compile(lambda x, y: (x * y).sin()), lambda x, y: (x * y).sin()):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        (first,) = torch.autograd.grad(run(x, x * 2).sum(), x, create_graph=True)
        found.append([first.detach(), *torch.autograd.grad(first.sum(), x)])
    torch.testing.assert_close(*found)


def test_one_result_twice():
    fast = torch.compile(lambda x: (x * 2,) * 2)
    for _ in range(3):
        a, b = fast(torch.ones(3, requires_grad=True))
        assert a is b


def test_views_of_what_requires_gradients_made_without_gradients():
    """Such views require gradients themselves; what is computed does not."""

    def f(x):
        return x.view(-1), x * 2, x.detach().view(-1)

    x, fast = torch.ones(5, 4, requires_grad=True), torch.compile(f)
    with torch.no_grad():
        for _ in range(3):
            assert [t.requires_grad for t in fast(x)] == [t.requires_grad for t in f(x)]
            assert [t.data_ptr() == x.data_ptr() for t in fast(x)] == [True, False, True]
