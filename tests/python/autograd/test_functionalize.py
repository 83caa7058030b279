"""`functionalize` and `linearize`: what they record is pure, and computes the same."""

import pytest
from function_module import FunctionModule

import rushlight as torch
from rushlight._functorch.functionalization import FunctionalizeMode
from rushlight.func import functionalize, jvp, linearize, vmap
from rushlight.fx.experimental.proxy_tensor import make_fx


def views_and_writes(x):
    y = x.clone()
    row, flat = y[0], y.view(-1)
    row.mul_(2)
    flat[1:3].add_(x.reshape(-1)[1:3])
    y.t_()
    y.relu_()
    torch.add(y, y, out=y)
    return y + 1, row


def argument(x):
    first, second = x.add_(1).unbind()
    second.zero_()
    return first * second


def every_view(x):
    y = x.clone()
    y.transpose(0, 1)[1].fill_(3)
    y.diagonal()[0] = 7.0
    y.permute(1, 0).unsqueeze(0)[0, 2].mul_(-1)
    y.flatten()[1:3].neg_()
    y.swapdims_(0, 1).unflatten(0, (3, 1))[2].add_(1)
    y.swapaxes_(0, 1)
    y.split(1)[1].sub_(0.5)
    y.expand(2, *y.shape)[0, 0, 0].exp_()
    y.as_strided((2, 2), (2, 1), 1).add_(10)
    y.masked_fill_(y > 10, 1)
    y[[0, 1], [1, 0]] = y.new_tensor([5.0, 6.0])
    return y


def complex_parts(x):
    z = torch.complex(x, x + 1)
    z.real.mul_(2)
    torch.view_as_real(z)[..., 1].add_(1)
    return torch.view_as_real(z).clone()


def batch_norm(x):
    mean, var = torch.zeros(3), torch.ones(3)
    y = torch.nn.functional.batch_norm(x, mean, var, training=True)
    return y, mean, var


def written(graph):
    return [node for node in graph.nodes if node.op == "call_function" and mutable(node.target)]


def mutable(target):
    schema = getattr(target, "_schema", None)
    return schema is not None and schema.is_mutable


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("f", [views_and_writes, argument, every_view, complex_parts, batch_norm])
def test_traces_are_pure_and_compute_the_same(f, remove):
    x = torch.randn(2, 3)
    module = make_fx(functionalize(f, remove=remove))(x.clone())
    writes = written(module.graph)
    # Only an argument may be written to: once, at the end.
    assert [node.target for node in writes] == [torch.ops.aten.copy_.default] * (f is argument)
    names = {getattr(node.target, "_opname", "") for node in module.graph.nodes}
    assert remove == "mutations" or not names & {"select", "slice", "diagonal", "t"}
    for other in (x, torch.randn(2, 3)):
        ours, theirs = other.clone(), other.clone()
        torch.testing.assert_close(module(ours), f(theirs))
        assert ours.equal(theirs)


def test_statistics_are_values_too_where_normalisation_is_seen_whole():
    """Its schema marks no write; before dispatch it is one operator."""

    def program(x, mean, var):
        return torch.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False), mean + var

    def pure(*inputs):
        with FunctionalizeMode(pre_dispatch=True) as mode:
            mode.add_inputs(inputs)
            return mode.values(program(*inputs))

    x, mean, var = torch.randn(4, 3), torch.zeros(3), torch.ones(3)
    module = make_fx(pure, pre_dispatch=True)(x, mean.clone(), var.clone())
    results = module(x, mean, var)
    assert mean.tolist() == [0] * 3 and var.tolist() == [1] * 3
    torch.testing.assert_close(results, program(x, mean, var))


def test_without_a_recorder_nothing_changes():
    x = torch.ones(2, 3)
    assert functionalize(argument)(x).tolist() == [0, 0, 0] and x.tolist() == [[2] * 3, [0] * 3]
    with pytest.raises(RuntimeError, match="Valid options"):
        functionalize(argument, remove="views")


def test_storages_cannot_change():
    with pytest.raises(NotImplementedError, match="resize_.*no pure form"):
        make_fx(functionalize(lambda x: x.clone().resize_(2)))(torch.ones(3))


def test_linearize_runs_the_function_once():
    calls = []

    def f(x, w):
        calls.append(0)
        y = torch.nn.functional.linear(x, w).relu()
        z = y.clone()
        z[0].mul_(2)
        z += x.sum()
        return {"soft": z.softmax(-1), "sum": (y if x.sum() > 0 else -y).sum()}

    torch.manual_seed(3)
    primals = torch.randn(4, 3), torch.randn(5, 3)
    out, push = linearize(f, *primals)
    torch.testing.assert_close(out, f(*primals))
    calls.clear()
    tangents = torch.randn(7, 4, 3), torch.randn(7, 5, 3)
    for t in zip(*tangents):
        torch.testing.assert_close(push(*t), jvp(f, primals, t)[1])
    assert len(calls) == 7  # of jvp's
    torch.testing.assert_close(
        vmap(push)(*tangents)["sum"], torch.stack([push(*t)["sum"] for t in zip(*tangents)])
    )
    with pytest.raises(RuntimeError, match="Expected shape of tangent"):
        push(torch.ones(3), tangents[1][0])


def test_linearize_composes():
    x, t = torch.randn(4, 3), torch.randn(4, 3)
    mapped = vmap(lambda x, t: linearize(torch.sin, x)[1](t))(x, t)
    torch.testing.assert_close(mapped, x.cos() * t)
    x.requires_grad_()
    (slope,) = torch.autograd.grad(linearize(torch.sin, x)[1](t).sum(), x)
    torch.testing.assert_close(slope, -x.sin() * t)


@pytest.mark.parametrize("name, args", [("transpose_", (0, 1)), ("t_", ()), ("squeeze_", (0,))])
def test_geometry_in_place(name, args):
    """Also where the overload in place is called otherwise than the pure one."""

    def program(x):
        y = x * 2
        getattr(y, name)(*args)
        return y.add_(1)

    x = torch.randn(1, 3)
    torch.testing.assert_close(make_fx(torch.func.functionalize(program))(x)(x), program(x))


def test_constants_of_a_program_are_not_written_to():
    def program(x):
        y = torch.tensor([1, 2, 3])
        y.view(-1).add_(1)
        return y + x

    graph = make_fx(functionalize(program))(torch.zeros(3))
    assert graph(torch.zeros(3)).tolist() == graph(torch.zeros(3)).tolist() == [2, 3, 4]


WITHIN = {
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum()),
    "vmap": lambda f: vmap(lambda x: f(x[None])),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x.cos(),))[1],
    "hessian": lambda f: torch.func.hessian(lambda x: f(x).sum()),
    "functionalized": lambda f: functionalize(vmap(lambda x: f(x[None]))),
    "of a convolution": lambda f: torch.func.grad(
        lambda x: f(torch.nn.functional.conv1d(x[None, None], torch.ones(2, 1, 2))).sum()
    ),
}


@pytest.mark.parametrize("transform", WITHIN)
def test_a_trace_of_a_transform_of_it_reads_its_inputs(transform):
    def written(x):
        y = x * 1
        y[0].mul_(3)
        y.add_(1)
        return y.sin()

    function = WITHIN[transform](functionalize(written))
    x = torch.arange(4.0)
    traced = make_fx(function)(x)
    program = torch.export.export(FunctionModule(function), (x,))
    expected = WITHIN[transform](written)(x + 1)
    assert torch.allclose(traced(x + 1), expected)
    assert torch.allclose(program.module()(x + 1), expected)
    assert not program.constants or transform == "of a convolution"
