"""`export.unflatten`: modules of a program that can be called and replaced; programs on another device."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import FlatArgsAdapter, export, unflatten
from rushlight.export.passes import move_to_device_pass


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("scale", torch.full((3,), 2.0))

    def forward(self, x, y):
        return self.linear(x) + self.scale * y, x + 1


class Dict(nn.Module):
    def forward(self, pair, other):
        return {"sum": pair[0] + other["key"], "product": pair[1] * other["key"]}


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.named = Pair(), Pair(), Dict()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x, z):
        a, b = self.first(x, x * 2)
        c, d = self.second(a, y=b)
        e, _ = self.first(c, d)
        found = self.named((c, e), other={"key": z})
        return found["sum"] * self.weight + found["product"]


X, Z = torch.linspace(-1, 1, 6).view(2, 3), torch.linspace(0, 3, 6).view(2, 3)


def test_modules_hold_their_part():
    model = Whole()
    made = unflatten(export(model, (X, Z)))
    assert torch.equal(made(X, Z), model(X, Z))
    assert list(made.state_dict()) == list(model.state_dict())
    assert [name for name, _ in made.named_modules()] == [name for name, _ in model.named_modules()]
    assert torch.equal(made.first.linear(X), model.first.linear(X))
    assert torch.equal(made.first.linear.weight, model.first.linear.weight)
    made(X, Z).sum().backward()
    assert made.second.linear.weight.grad is not None and model.second.linear.weight.grad is None
    graphs = [made.graph, made.second.graph, *(call.graph for call in made.first.call_modules())]
    assert all("val" in n.meta for graph in graphs for n in graph.nodes if n.op != "output")


def test_kept_signatures_allow_replacement():
    model = Whole()
    program = export(model, (X, Z), preserve_module_call_signature=("first", "second", "named"))
    names = [entry.fqn for entry in program.module_call_graph if entry.signature]
    assert names == ["", "first", "second", "named", "first@1"]
    made = unflatten(program)
    assert torch.equal(made(X, Z), model(X, Z))
    other = Pair()
    made.first, made.named, model.first = other, Dict(), other
    assert torch.equal(made(X, Z), model(X, Z))
    assert torch.equal(made.second(X, y=Z)[0], model.second(X, Z)[0])


def test_calls_that_differ():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.calls = nn.Parameter(torch.ones(3)), 0

        def forward(self, x):
            self.calls += 1
            return x * self.weight if self.calls % 2 else x.sin() + self.weight

    model = nn.Sequential(Odd(), nn.ReLU())
    model.append(model[0])
    made = unflatten(export(model, (X,)))
    expected = (X.relu() * 0 + X).relu().sin() + 1
    assert torch.allclose(made(X), expected) and torch.allclose(made(X), expected)
    assert made.get_submodule("0") is made.get_submodule("2")
    assert len(made.get_submodule("0").call_modules()) == 2
    assert list(made.state_dict()) == ["0.weight", "2.weight"]


def test_shared_and_tied():
    norm = nn.LayerNorm(3)
    model = nn.Sequential(norm, nn.Linear(3, 3), norm)
    model[1].bias = norm.bias
    made = unflatten(export(model, (X,)))
    assert torch.equal(made(X), model(X))
    assert made.get_submodule("0") is made.get_submodule("2")
    assert made.get_submodule("1").bias is made.get_submodule("0").bias
    names = [name for name, _ in model.named_modules(remove_duplicate=False)]
    assert [name for name, _ in made.named_modules(remove_duplicate=False)] == names


def test_a_program_and_its_modules_have_tensors_of_their_own():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(2, 3))

        def forward(self, x):
            self.seen.add_(x)
            return x + self.seen

    program = export(Counts(), (X,))
    made = unflatten(program)
    first = program.module()(X)
    assert torch.equal(made(X), first)


def test_buffers_are_written():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(2, 3))

        def forward(self, x):
            self.seen.add_(x)
            return x - self.seen

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Counts()

        def forward(self, x):
            return self.inner(x) + self.inner.seen

    made = unflatten(export(Outer(), (X,)))
    made(X)
    made(X)
    assert torch.equal(made.inner.seen, X * 2)


def test_inputs_are_checked():
    made = unflatten(export(Whole(), (X, Z)))
    with pytest.raises(AssertionError, match=r"size\(\)\[0\] == 2"):
        made(torch.ones(5, 3), Z)
    with pytest.raises(TypeError, match="flat args adapter"):
        made(X, Z, Z)

    class FirstTwo(FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            return input_args[:2]

    model = Whole()
    made = unflatten(export(model, (X, Z)), FirstTwo())
    assert torch.equal(made(X, Z, Z), model(X, Z))


def test_traced_again():
    model = Whole()
    made = unflatten(export(model, (X, Z)))
    traced = torch.fx.symbolic_trace(made, concrete_args=(torch.fx.PH, torch.fx.PH))
    assert torch.equal(traced(X, Z), model(X, Z))
    nested = unflatten(export(Dict(), ((X, Z), {"key": X})))
    traced = torch.fx.symbolic_trace(nested, concrete_args=(torch.fx.PH,) * 3)
    assert torch.equal(traced(X, Z, X)["sum"], X + X)
    again = export(made, (X, Z)).module()
    assert torch.equal(again(X, Z), model(X, Z))


def test_sizes_that_change():
    model = Whole()
    batch = torch.export.Dim("batch", min=2)
    made = unflatten(export(model, (X, Z), dynamic_shapes=({0: batch}, {0: batch})))
    x, z = torch.rand(5, 3), torch.rand(5, 3)
    assert torch.allclose(made(x, z), model(x, z))


def test_program_on_another_device():
    class Makes(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.register_buffer("b", torch.ones(3))

        def forward(self, x):
            return self.linear(x) + torch.zeros(3, device=x.device) + self.b

    program = export(Makes(), (X,))
    for location in ("meta", {"cpu": "meta"}, torch.device("meta")):
        moved = move_to_device_pass(program, location)
        assert {t.device.type for t in moved.state_dict.values()} == {"meta"}
        assert moved.module()(X.to("meta")).device.type == "meta"
        assert moved.state_dict["linear.weight"].requires_grad
    assert move_to_device_pass(program, {"cuda:0": "meta"}).module()(X).device.type == "cpu"
    assert program.module()(X).device.type == "cpu"


def test_constants_of_a_module_that_is_called_in_several_ways():
    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.constant = torch.full((1,), 4.0)
            self.register_buffer("kept", torch.ones(1))

        def forward(self, x, adding):
            return x + self.constant + 1 if adding else x * 2 * (self.kept + 1) - self.constant

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x):
            return self.part(x + 3, True) + self.part(x, False)

    x = torch.randn(3)
    parts = unflatten(export(Whole(), (x,)))
    for _ in range(2):  # every call takes the next graph, over and over
        torch.testing.assert_close(parts(x), Whole()(x))
