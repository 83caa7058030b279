"""`fx.passes.reinplace`: graphs whose operators write where nobody looks again."""

import pytest

import rushlight as torch
from rushlight.func import functionalize
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.fx.passes.reinplace import reinplace


def targets(module):
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def changed(function, *inputs):
    """The module of a function, reinplaced; it computes the same twice and leaves its inputs alone."""
    module = reinplace(make_fx(function)(*inputs), *inputs)
    wanted = function(*inputs)
    copies = [x.clone() for x in inputs]
    for _ in range(2):
        assert torch.equal(module(*copies), wanted)
        assert all(torch.equal(a, b) for a, b in zip(copies, inputs))
    return module


def test_a_result_goes_to_an_operand_that_is_not_used_again():
    module = changed(lambda x: (x.clone() + 1).exp().sum(0), torch.rand(2, 3))
    assert targets(module) == [
        "aten.clone.default",
        "aten.add_.Tensor",
        "aten.exp_.default",
        "aten.sum.dim_IntList",
    ]


def test_a_number_stays_a_number():
    module = changed(lambda x: x.clone().pow(2), torch.rand(3))
    assert targets(module) == ["aten.clone.default", "aten.pow_.Scalar"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,  # the caller's
        lambda x: x.view(-1) + 1,
        lambda x: (lambda a: (a + 1) * a)(x.clone()),  # read later
        lambda x: (lambda a, v: (a + 1, v * 2)[0] + v)(*(lambda a: (a, a.view(-1)[:1]))(x.clone())),
        lambda x: (lambda a: a.ge(0) | a.le(1))(x.clone()),  # another dtype
        lambda x: x[:1].clone().expand(4, 3) + 1,  # elements in one place
        lambda x: (lambda a: a + a.t())(x.clone()),  # the other operand lies there otherwise
    ],
)
def test_what_would_be_seen_stays_as_it_is(function):
    module = changed(function, torch.rand(3, 3))
    first = next(t for t in targets(module) if t.partition(".")[2].startswith(("add", "ge")))
    assert not first.startswith(("aten.add_", "aten.ge_"))


def test_views_of_the_operand_may_be_read_before():
    def function(x):
        a = x.clone()
        v = a.view(-1)
        s = v.sum()
        return (v * 2) * s

    module = changed(function, torch.rand(2, 2))
    assert targets(module)[-2:] == ["aten.mul_.Tensor", "aten.mul_.Tensor"]


def test_constants_are_not_written_to():
    module = changed(lambda x: torch.tensor([1.0, 2.0]) + x, torch.rand(2))
    assert module(torch.zeros(2)).tolist() == module(torch.zeros(2)).tolist() == [1, 2]


def test_a_part_that_was_written_in_place_is_not_written_again():
    aten = torch.ops.aten
    tracer = torch.fx.Graph()
    x = tracer.placeholder("x")
    whole = tracer.call_function(aten.clone.default, (x,))
    part = tracer.call_function(aten.select.int, (whole, 0, 1))
    more = tracer.call_function(aten.add.Tensor, (part, 1))
    again = tracer.call_function(aten.view.default, (whole, [2, 2]))
    tracer.output(tracer.call_function(aten.select_scatter.default, (again, more, 0, 1)))
    module = reinplace(torch.fx.GraphModule(torch.nn.Module(), tracer), torch.zeros(2, 2))
    names = ["aten.clone.default", "aten.select.int", "aten.add_.Tensor", "aten.view.default"]
    assert targets(module) == names
    assert module(torch.zeros(2, 2)).tolist() == [[0, 0], [1, 1]]


def test_another_part_is_copied_to_its_place():
    aten = torch.ops.aten
    tracer = torch.fx.Graph()
    x = tracer.placeholder("x")
    whole = tracer.call_function(aten.clone.default, (x,))
    part = tracer.call_function(aten.select.int, (whole, 0, 1))
    more = tracer.call_function(aten.add.Tensor, (part, 1))
    tracer.output(tracer.call_function(aten.select_scatter.default, (whole, more, 0, 0)))
    module = reinplace(torch.fx.GraphModule(torch.nn.Module(), tracer), torch.zeros(2, 2))
    assert targets(module)[2:] == ["aten.add.Tensor", "aten.select.int", "aten.copy_.default"]
    assert module(torch.zeros(2, 2)).tolist() == [[1, 1], [0, 0]]


def test_programs_with_views_and_writes_compute_the_same():
    def program(x):
        y = x.clone()
        y.view(-1)[1:3].add_(1)
        y[0].mul_(2)
        y.t()[1].sub_(y[0])
        return y.relu_() + 1

    x = torch.randn(3, 3)
    module = reinplace(make_fx(functionalize(program))(x), x)
    assert torch.allclose(module(x), program(x)) and torch.allclose(module(x), program(x))
