"""Exported programs have the gradients of the programs, also where these switch them off."""

import io

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased
from rushlight.export import Dim, export, load, save, unflatten


class Program(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.one, self.other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, x):
        return self.function(self, x)


def teacher(self, x):
    with torch.no_grad():
        wanted = self.one(x).relu()
    return (self.other(x) - wanted) ** 2


@torch.no_grad()
def decorated(self, x):
    return self.one(x).sigmoid() * x.sum()


def average(self, x):
    y = self.one(x)
    with torch.no_grad():
        self.mean.mul_(0.9).add_(y.mean(0) * 0.1)
    return y - self.mean


def nested(self, x):
    with torch.no_grad():
        y = self.one(x)
        with torch.enable_grad():
            z = self.other(x)
        y = y * 2
    return y + z + y.detach()


PROGRAMS = {
    "teacher": teacher,
    "decorated": lambda self, x: self.other(x) + decorated(self, x),
    "average": average,
    "nested": nested,
    "inference": lambda self, x: self.one(x) + gate(self, x),
}


def gate(self, x):
    with torch.set_grad_enabled(False):
        return self.other(x).tanh()


NAMES = [name for name, _ in Program(None).named_parameters()]


def gradients(module, x):
    found = []
    for _ in range(2):
        module.zero_grad()
        x.grad = None
        module(x).sum().backward()
        found += [None if t.grad is None else t.grad.clone() for t in (*map(module.get_parameter, NAMES), x)]
    return [*found, module.mean.clone()]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("sizes", [None, ({0: Dim("rows")},)])
def test_gradients_are_switched_off_where_the_program_does(name, sizes):
    module, x = Program(PROGRAMS[name]), torch.rand(5, 3).requires_grad_()
    program = export(module, (torch.rand(5, 3),), dynamic_shapes=sizes)
    made, held = program.module(), module.mean.clone()
    wanted = gradients(module, x)
    made.mean.detach_().copy_(held)
    found = gradients(made, x)
    assert [g is None for g in found] == [g is None for g in wanted]
    assert all(g is None or torch.allclose(g, w, atol=1e-6) for g, w in zip(found, wanted))


def test_programs_that_switch_nothing_have_no_parts():
    with torch.no_grad():
        program = export(Program(teacher), (torch.rand(5, 3),))
    other = export(Program(lambda self, x: self.one(x)), (torch.rand(5, 3),))
    for graph in (program.graph, other.graph):
        assert not any(n.target is torch.ops.higher_order.wrap_with_set_grad_enabled for n in graph.nodes)


def steps_of(self, x, way):
    """A value by an operator of functions."""
    from rushlight._higher_order_ops import map, while_loop

    if way == "cond":
        return torch.cond(x.sum() > 0, self.one, self.other, (x,))
    if way == "map":
        return map(lambda row: self.one(row), x)
    done, y = while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, y * self.one(x)), (torch.tensor(0), x[:, :2])
    )
    return y


def inside(self, x):
    def one(x):
        with torch.no_grad():
            scale = self.one(x).exp()
        return scale * self.other(x)

    return torch.cond(x.sum() > 0, one, self.other, (x,))


def written(self, x):
    y = self.one(x).clone()
    with torch.no_grad():
        y.mul_(2)
        y[0] = self.other(x)[0]
    return y * self.other(x)


def sized(self, x):
    """Numbers between steps without gradients, which steps use."""
    with torch.no_grad():
        y = self.one(x)
        y = y.reshape(x.shape[0] * 2) * torch.arange(y.numel())
        z = y.reshape(-1, 2)
    return z[: x.shape[0]] * self.other(x)


PARTS = {
    "cond": lambda self, x: self.other(x) * torch.no_grad()(steps_of)(self, x, "cond"),
    "map": lambda self, x: self.other(x) * torch.no_grad()(steps_of)(self, x, "map"),
    "loop": lambda self, x: self.other(x) * torch.no_grad()(steps_of)(self, x, "loop"),
    "inside": inside,
    "written": written,
    "sized": sized,
}


def through_a_file(program):
    stream = io.BytesIO()
    save(program, stream)
    return load(io.BytesIO(stream.getvalue()))


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("way", ["module", "file", "again", "unflatten"])
def test_parts_without_gradients(name, way):
    module, x = Program(PARTS[name]), torch.rand(5, 3).requires_grad_()
    program = export(module, (torch.rand(5, 3),))
    wanted = gradients(module, x)
    if way == "again":
        program = export(program.module(), (torch.rand(5, 3),))
    made = (through_a_file(program) if way == "file" else program).module()
    found = gradients(unflatten(program) if way == "unflatten" else made, x)
    assert [g is None for g in found] == [g is None for g in wanted]
    assert all(g is None or torch.allclose(g, w, atol=1e-5) for g, w in zip(found, wanted))


def test_parts_are_one_operator_as_in_pytorch():
    program = export(Program(nested), (torch.rand(5, 3),), dynamic_shapes=({0: Dim("rows")},))
    calls = [n for n in program.graph.nodes if n.op == "call_function" and "wrap" in n.name]
    assert [n.args[0] for n in calls] == [False, False]
    assert {m.graph.output_node().name for m in program.graph_module.children()} == {"output"}
    program.validate()
    flat = program.run_decompositions().graph
    assert not any("region" in n.meta for n in flat.nodes)
    assert program.module()(torch.ones(7, 3)).shape == (7, 2)


@pytest.mark.skipif(is_aliased(), reason="both libraries are needed")
@pytest.mark.parametrize("name", ["teacher", "average", "nested", "written", "sized"])
def test_pytorch_reads_parts_without_gradients(name, tmp_path):
    pytorch = pytest.importorskip("torch")
    module, x = Program({**PROGRAMS, **PARTS}[name]), torch.rand(5, 3)
    program = export(module, (x,), dynamic_shapes=({0: Dim("rows", min=2)},))
    save(program, tmp_path / "program.pt2")
    other = pytorch.export.load(tmp_path / "program.pt2").module()
    module(x).sum().backward()
    other(pytorch.tensor(x.tolist())).sum().backward()
    for name, p in module.named_parameters():
        found = other.get_parameter(name).grad
        assert (found is None) == (p.grad is None)
        assert found is None or torch.allclose(torch.tensor(found.tolist()), p.grad, atol=1e-5)


def test_files_of_one_model_hold_what_runs_without_gradients(tmp_path):
    module, x = Program(teacher).eval(), torch.rand(5, 3)
    torch.export.save_file(export(module, (x,)), tmp_path / "model.rl")
    assert torch.allclose(torch.export.load_file(tmp_path / "model.rl")(x), module(x), atol=1e-6)


def test_writes_without_gradients_are_no_dead_code():
    def counted(self, x):
        with torch.no_grad():
            self.mean.add_(1)
        return self.one(x)

    program = export(Program(counted), (torch.rand(5, 3),))
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()
    made = program.module()
    made(torch.rand(5, 3))
    assert made.mean.tolist() == [1, 1]
