"""Numbers of the data that functions of `cond`, `map` and `while_loop` read in a graph."""

import math

import pytest
from function_module import FunctionModule

import rushlight as torch
from rushlight._higher_order_ops import cond, while_loop
from rushlight._higher_order_ops import map as hop_map
from rushlight.export import export, load, save
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from rushlight.testing import assert_close


def whole(x):
    return x[0, 0].long().item()


def chosen(one, other=torch.cos):
    return lambda p, x: cond(p, one, other, (x,))


def checked(x):
    n = whole(x)
    torch._check(n >= 0)
    torch._check(n < 9)
    return x * n + n / 2


def nested(x):
    return cond(x.sum() > 50, lambda x: x * x.sum().item(), lambda x: x - whole(x), (x,))


PROGRAMS = {
    "numbers of both branches": chosen(lambda x: x * x.sum().item(), lambda x: x + whole(x)),
    "computed": chosen(lambda x: x * (whole(x) * 2 + 1) - x.sum().item() / 3),
    "filled": chosen(lambda x: x + torch.full((4,), whole(x)), lambda x: x * -whole(x)),
    "checked": chosen(checked),
    "nested": chosen(nested),
    "rows": lambda p, x: hop_map(lambda row: row * row.sum().item(), x),
    "loop": lambda p, x: while_loop(lambda x: x.sum() < 99, lambda x: (x * x[0, 0].item() + 1,), (x,))[0],
}
programs = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def example(truth=True):
    return torch.tensor(truth), torch.rand(3, 4) * 5 + 2


def alike(run, program):
    for truth in (True, False):
        for _ in range(3):
            given = example(truth)
            assert_close(run(*given), program(*given))


@programs
def test_an_export_reads_them_when_it_runs(program, tmp_path):
    made = export(FunctionModule(program), example())
    assert not made.range_constraints
    save(made, tmp_path / "program.pt2")
    for other in (made, made.run_decompositions(), load(tmp_path / "program.pt2")):
        alike(other.module(), program)


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_a_trace_reads_them_and_its_gradients_do(mode):
    def program(p, x):
        x = x.detach().requires_grad_()
        y = cond(p, lambda x: x * x.exp() * x.mean().item(), lambda x: x.cos() * whole(x), (x,))
        return torch.autograd.grad(y.sum(), x)[0]

    alike(make_fx(program, tracing_mode=mode)(*example()), program)


def test_a_check_holds_where_its_branch_is_taken():
    module = export(FunctionModule(chosen(checked)), example()).module()
    large = torch.full((3, 4), 20.0)
    assert_close(module(torch.tensor(False), large), large.cos())
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        module(torch.tensor(True), large)


REFUSED = {
    "size": (lambda x: x + torch.zeros(whole(x)).sum(), "as `size` of an operator"),
    "found size": (lambda x: x + x.nonzero().sum(), "a size that depends on its data"),
    "slice": (lambda x: x * x[: whole(x)].sum(), "as an index"),
    "root": (lambda x: x * math.sqrt(whole(x)), "in a way that a graph cannot follow"),
    "remainder": (lambda x: x * (whole(x) % 2), "in a way that a graph cannot follow"),
    "branch": (lambda x: x * 2 if whole(x) > 3 else x, "data-dependent expression"),
}


@pytest.mark.parametrize("function, message", REFUSED.values(), ids=REFUSED)
def test_what_a_graph_cannot_follow_is_refused(function, message):
    with pytest.raises(GuardOnDataDependentSymNode, match=message):
        export(FunctionModule(chosen(function)), example())


def test_a_number_from_around_does_not_mix():
    def program(p, x):
        number = x.sum().item()
        return cond(p, lambda x: x * (number + x.mean().item()), torch.cos, (x,))

    with pytest.raises(GuardOnDataDependentSymNode, match="one of the graph around"):
        export(FunctionModule(program), example())
