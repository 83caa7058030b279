"""`while_loop` in graphs: one node, whose condition and body are graphs of their own."""

import pytest

import rushlight as torch
from rushlight._higher_order_ops import while_loop
from rushlight.export import Dim, export
from rushlight.fx.experimental.proxy_tensor import make_fx


def doubled_up_to_ten(x):
    return while_loop(lambda x: x.sum() < 10, lambda x: (x.clone().mul_(2),), (x,))


def loops_of(graph):
    return [node for node in graph.nodes if node.target is torch.ops.higher_order.while_loop]


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("change", [lambda f: f, torch.func.functionalize])
def test_a_trace_keeps_the_loop(mode, change):
    traced = make_fx(change(doubled_up_to_ten), tracing_mode=mode)(torch.ones(2))
    (node,) = loops_of(traced.graph)
    assert len(node.args[2]) == 1 and node.args[3] == ()
    writes = [n for n in traced.while_loop_body_graph_0.graph.nodes if n.target is torch.ops.aten.mul_.Tensor]
    assert len(writes) == (change is not torch.func.functionalize)
    for start in (torch.ones(2), torch.full((2,), 7.0), torch.tensor([0.1, 0.2])):
        assert torch.equal(traced(start)[0], doubled_up_to_ten(start)[0])


class Steps(torch.nn.Module):
    """As many steps as its data say; uses parameters, a buffer and a constant that it makes."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.register_buffer("least", torch.tensor(1))

    def forward(self, count, x):
        def more(state):
            return state["count"] >= self.least

        def step(state):
            return {"count": state["count"] - 1, "x": self.layer(state["x"]) + torch.tensor(2.0)}

        return while_loop(
            lambda state: more(state), lambda state: (step(state),), ({"count": count, "x": x},)
        )


@pytest.mark.parametrize("decomposed", [False, True])
def test_an_export_runs_as_often_as_the_data_say(decomposed):
    program, shapes = Steps(), (None, {0: Dim("rows")})
    exported = export(program, (torch.tensor(3), torch.randn(3, 2)), dynamic_shapes=shapes)
    if decomposed:
        exported = exported.run_decompositions()
    (node,) = loops_of(exported.graph)
    given = {n.name for n in node.args[3]}
    assert given == {"b_least", "p_layer_weight", "p_layer_bias", "c_lifted_tensor_0"}
    exported.validate()
    x = torch.randn(5, 2)
    for count in (0, 1, 4):
        (result,), (expected,) = exported.module()(torch.tensor(count), x), program(torch.tensor(count), x)
        assert torch.equal(result["count"], expected["count"])
        torch.testing.assert_close(result["x"], expected["x"])
    x.requires_grad_()
    exported.module()(torch.tensor(2), x)[0]["x"].sum().backward()
    ours, x.grad = x.grad, None
    program(torch.tensor(2), x)[0]["x"].sum().backward()
    torch.testing.assert_close(ours, x.grad)


def test_loops_nest():
    def program(i, j, x):
        def inner(i, j, x):
            _, x = while_loop(lambda j, x: j > 0, lambda j, x: (j - 1, x + i), (j, x))
            return i - 1, j.clone(), x

        return while_loop(lambda i, j, x: i > 0, inner, (i, j, x))

    traced = make_fx(program, tracing_mode="fake")(torch.tensor(2), torch.tensor(3), torch.zeros(2))
    assert loops_of(traced.while_loop_body_graph_0.graph)
    for i, j in ((2, 3), (3, 1), (0, 5)):
        given = torch.tensor(i), torch.tensor(j), torch.zeros(2)
        assert [t.tolist() for t in traced(*given)] == [t.tolist() for t in program(*given)]


def test_what_the_loop_gives_is_not_known():
    def program(x):
        i, _ = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x), (torch.tensor(0), x))
        return int(i)

    with pytest.raises(RuntimeError):
        make_fx(program, tracing_mode="fake")(torch.ones(2))


def test_a_loop_that_depends_on_a_size_is_the_same_at_all():
    class Program(torch.nn.Module):
        def forward(self, x):
            return while_loop(lambda x: x.sum() < 10, lambda x: (x + x.size(0),), (x,))

    exported = export(Program(), (torch.ones(3),), dynamic_shapes=({0: Dim("n")},))
    for n in (2, 3, 5):
        x = torch.randn(n)
        torch.testing.assert_close(exported.module()(x), Program()(x))


def test_a_body_returns_what_it_takes():
    with pytest.raises(RuntimeError, match="must return what it takes"):
        make_fx(lambda x: while_loop(lambda x: x.sum() < 9, lambda x: torch.ones(3), (x,)))(torch.ones(2))
