"""Exported programs have the gradients of the programs, also where these switch them off."""

import pytest

import rushlight as torch
from rushlight.export import Dim, export


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


def test_programs_that_switch_nothing_have_no_detached_values():
    with torch.no_grad():
        program = export(Program(teacher), (torch.rand(5, 3),))
    other = export(Program(lambda self, x: self.one(x)), (torch.rand(5, 3),))
    for graph in (program.graph, other.graph):
        assert not any(n.target is torch.ops.aten.detach.default for n in graph.nodes)
