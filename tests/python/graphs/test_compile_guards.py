"""`torch.compile` never gives another answer: Python state that a program reads may change between calls."""

import functools
import random
import types

import pytest
from compile_checks import X, graphs, no_measuring  # noqa: F401 - a fixture

import rushlight as torch

nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.usefixtures("no_measuring")


# --- state of Python that changes -------------------------------------------------------------------

scale = 2
settings = types.SimpleNamespace(bias=1.0, nested={"power": 2, "list": [1, 2]})


def test_globals():
    global scale
    scale = 2
    f = torch.compile(lambda x: x * scale)
    assert torch.equal(f(X), X * 2) and torch.equal(f(X), X * 2)
    scale = 3
    assert torch.equal(f(X), X * 3)
    scale = 2.0
    assert torch.equal(f(X), X * 2)
    assert graphs(f) == 3


def test_attributes_and_containers():
    def f(x):
        return x ** settings.nested["power"] + settings.bias + len(settings.nested["list"])

    fast = torch.compile(f)
    for change in (
        lambda: None,
        lambda: setattr(settings, "bias", 2.0),
        lambda: settings.nested.update(power=3),
        lambda: settings.nested["list"].append(5),
        lambda: setattr(settings, "nested", {"power": 1, "list": []}),
    ):
        change()
        for _ in range(2):
            assert torch.equal(fast(X), f(X))
    assert graphs(fast) == 5


def test_closures_and_nonlocals():
    factor = 2

    def outer():
        def f(x):
            return x * factor

        return f

    f = outer()
    fast = torch.compile(f)
    assert torch.equal(fast(X), X * 2)
    factor = 5
    assert torch.equal(fast(X), X * 5)


def test_zero_of_either_sign_and_bools():
    value = 0.0

    def f(x):
        return torch.copysign(x, torch.full_like(x, value)) if isinstance(value, float) else x

    fast = torch.compile(f)
    for value in (0.0, -0.0, 0, False, True, 1, 1.0):
        assert torch.equal(fast(X), f(X)), value


def test_functions_of_functions():
    def helper(x):
        return x + 1

    def other(x):
        return x - 1

    table = {"f": helper}
    bound = functools.partial(torch.mul, other=3)

    def f(x):
        return bound(table["f"](x))

    fast = torch.compile(f)
    assert torch.equal(fast(X), (X + 1) * 3)
    table["f"] = other
    assert torch.equal(fast(X), (X - 1) * 3)
    helper.__code__ = other.__code__
    table["f"] = helper
    assert torch.equal(fast(X), (X - 1) * 3)


class Model(nn.Module):
    width = 1

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.drop, self.norm = nn.Dropout(0.5), nn.BatchNorm1d(4)
        self.register_buffer("shift", torch.ones(4))
        self.factor, self.layers, self.flag = 2, ["first"], False

    def forward(self, x):
        for name in self.layers:
            x = getattr(self, name)(x)
        x = x * self.factor * self.width + self.shift
        if self.training and self.flag:
            x = self.drop(x)
        return x


def test_attributes_of_modules():
    model = Model().eval()
    fast = torch.compile(model)
    steps = [
        lambda: None,
        lambda: setattr(model, "factor", 3),
        lambda: model.layers.append("second"),
        lambda: setattr(model, "shift", torch.full((4,), 2.0)),
        lambda: setattr(model, "first", nn.Linear(4, 4)),
        lambda: setattr(model.second, "weight", nn.Parameter(torch.ones(4, 4))),
        lambda: setattr(Model, "width", 4),
    ]
    try:
        for step in steps:
            step()
            with torch.no_grad():
                for _ in range(2):
                    assert torch.equal(fast(X), model(X))
    finally:
        Model.width = 1
    assert 1 <= graphs(fast) <= len(steps)


def test_methods_replaced():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    fast = torch.compile(model)
    assert torch.equal(fast(X), model(X))
    model[1].forward = lambda x: x - 1
    assert torch.equal(fast(X), model(X))
    del model[1].forward

    class Other(nn.ReLU):
        def forward(self, x):
            return -x

    model[1].__class__ = Other
    assert torch.equal(fast(X), model(X))
    Other.forward = lambda self, x: x * 7
    assert torch.equal(fast(X), model(X))


def test_training_and_evaluation():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    twin = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    twin.load_state_dict(model.state_dict())
    fast = torch.compile(model)
    for training in (True, False, True, True, False):
        fast.train(training), twin.train(training)
        torch.manual_seed(3)
        got = fast(X)
        torch.manual_seed(3)
        assert torch.equal(got, twin(X))
        assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), twin.state_dict().values()))


def test_weights_are_read_at_each_call():
    model = nn.Linear(4, 4)
    fast = torch.compile(model)
    with torch.no_grad():
        fast(X)
        model.weight.add_(1)
        assert torch.equal(fast(X), model(X))
        model.weight.data = torch.randn(4, 4)
        assert torch.equal(fast(X), model(X))
        model.weight.data.mul_(2)
        assert torch.equal(fast(X), model(X))
        model.load_state_dict(nn.Linear(4, 4).state_dict())
        assert torch.equal(fast(X), model(X))
        model.load_state_dict(nn.Linear(4, 4).state_dict(), assign=True)
        assert torch.equal(fast(X), model(X))
        model.double()
        assert torch.equal(fast(X.double()), model(X.double()))


def test_hooks_that_come_later():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    fast, seen = torch.compile(model), []
    fast(X)
    handle = model[0].register_forward_hook(lambda m, i, o: o * 2)
    assert torch.equal(fast(X), model(X))
    handle.remove()
    assert torch.equal(fast(X), model(X))
    handle = model[1].register_forward_pre_hook(lambda m, i: seen.append(len(seen)))
    fast(X), fast(X)
    assert len(seen) == 2
    handle.remove()
    with_hook = nn.modules.module.register_module_forward_hook(lambda m, i, o: seen.append("all"))
    fast(X)
    with_hook.remove()
    assert seen[2:].count("all") >= 3


def test_backward_hooks():
    model, seen = nn.Linear(4, 4), []
    fast = torch.compile(model)
    fast(X).sum().backward()
    model.register_full_backward_hook(lambda m, gi, go: seen.append(1))
    fast(X).sum().backward()
    model.weight.register_hook(lambda g: seen.append(2))
    fast(X).sum().backward()
    assert sorted(seen) == [1, 1, 2]


# --- effects ------------------------------------------------------------------------------------------


def test_side_effects_happen_at_each_call():
    log, counts = [], {"n": 0}

    def f(x):
        log.append(x.shape[0])
        counts["n"] += 1
        return x + counts["n"]

    fast = torch.compile(f)
    results = [fast(X) for _ in range(3)]
    assert log == [3, 3, 3] and counts["n"] == 3
    assert [(r - X)[0, 0].item() for r in results] == [1, 2, 3]


class Counter(nn.Module):
    total = 0

    def __init__(self):
        super().__init__()
        self.calls, self.last = 0, None

    def forward(self, x):
        self.calls += 1
        Counter.total += 1
        self.last = x * 2
        return self.last + self.calls


def test_attributes_that_forward_sets():
    model = Counter()
    fast = torch.compile(model)
    assert [fast(X)[0, 0].item() for _ in range(3)] == [-9, -8, -7]
    assert model.calls == Counter.total == 3 and torch.equal(model.last, X * 2)
    assert type(model.last) is torch.Tensor


def test_global_and_nonlocal_writes():
    seen = 0

    def f(x):
        nonlocal seen
        seen += 1
        globals()["written"] = seen
        return x + seen

    fast = torch.compile(f)
    assert [fast(X)[0, 0].item() for _ in range(3)] == [-4, -3, -2] and seen == written == 3  # noqa: F821


def test_printing(capsys):
    def f(x):
        print("called")
        return x + 1

    fast = torch.compile(f)
    fast(X), fast(X)
    assert capsys.readouterr().out == "called\ncalled\n"


def test_arguments_that_are_changed():
    def f(xs, d):
        xs.append(xs[0] + 1)
        d["y"] = xs[-1] * 2
        return d["y"]

    fast = torch.compile(f)
    for _ in range(3):
        xs, d = [X], {}
        assert torch.equal(fast(xs, d), (X + 1) * 2)
        assert len(xs) == 2 and torch.equal(xs[1], X + 1) and torch.equal(d["y"], (X + 1) * 2)


def test_random_numbers_of_python_and_of_torch():
    f = torch.compile(lambda x: x + random.random())
    random.seed(0)
    got = [f(X)[0, 0].item() for _ in range(3)]
    random.seed(0)
    assert got == [(X + random.random())[0, 0].item() for _ in range(3)]

    def g(x):
        unused = torch.rand(3)  # noqa: F841
        return F.dropout(x, 0.5) + torch.randn_like(x) + torch.rand(4)

    fast = torch.compile(g)
    torch.manual_seed(1)
    got = [fast(X) for _ in range(4)]
    torch.manual_seed(1)
    assert all(torch.equal(a, g(X)) for a in got) and graphs(fast) == 1


def test_seeding_inside():
    def f(x):
        torch.manual_seed(5)
        return x + torch.rand(4)

    fast = torch.compile(f)
    assert torch.equal(fast(X), fast(X)) and torch.equal(fast(X), f(X))


# --- modules among the arguments --------------------------------------------------------------------


def test_modules_given_as_arguments():
    def loss(model, x):
        return model(x).square().mean()

    first, second, x = nn.Linear(3, 3), nn.Linear(3, 3), torch.ones(2, 3)
    compiled = torch.compile(loss, fullgraph=True)
    for module in (first, second, first):
        module.weight.grad = None
        value = compiled(module, x)
        value.backward()
        assert torch.allclose(value, loss(module, x)) and module.weight.grad is not None
    with torch.no_grad():
        first.weight.add_(1)
    assert torch.allclose(compiled(first, x), loss(first, x))
    first.bias = None
    assert torch.allclose(compiled(first, x), loss(first, x))
    hook = first.register_forward_hook(lambda module, given, output: output + 1)
    assert torch.allclose(compiled(first, x), loss(first, x))
    hook.remove()
    assert torch.allclose(compiled(first, x), loss(first, x))


def test_modules_within_containers_of_arguments():
    dropout, linear, x = nn.Dropout(0.5), nn.Linear(4, 64), torch.ones(2, 4)
    compiled = torch.compile(lambda parts, x: parts["drop"](parts["list"][0](x)), fullgraph=True)
    parts = {"drop": dropout, "list": [linear]}
    assert (compiled(parts, x) == 0).any()
    dropout.eval()
    assert torch.allclose(compiled(parts, x), linear(x))
    parts["list"][0] = nn.Identity()
    assert torch.equal(compiled(parts, x), x)


def test_module_argument_that_counts_its_calls():
    class Counts(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    module = Counts()
    compiled = torch.compile(lambda module, x: module(x))
    assert [compiled(module, torch.ones(1)).item() for _ in range(4)] == [1, 2, 3, 4] and module.calls == 4


def test_modules_with_several_buffers_that_are_not_saved():
    class Rotary(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("frequencies", torch.ones(3), persistent=False)
            self.register_buffer("first_frequencies", torch.ones(3), persistent=False)

        def forward(self, x):
            return x * self.frequencies + self.first_frequencies

    rotary, x = Rotary(), torch.ones(2, 3)
    for compiled in (
        torch.compile(rotary, fullgraph=True),
        lambda x: torch.compile(lambda module, x: module(x), fullgraph=True)(rotary, x),
    ):
        assert torch.equal(compiled(x), torch.full((2, 3), 2.0))
    compiled = torch.compile(rotary, fullgraph=True)
    assert torch.equal(compiled(x), rotary(x))
    rotary.register_buffer("frequencies", torch.full((3,), 5.0))
    assert torch.equal(compiled(x), torch.full((2, 3), 6.0))
