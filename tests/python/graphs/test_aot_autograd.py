"""Ahead-of-time autograd: forward and backward passes as graphs for compilers, `functorch.compile`."""

import copy
import functools
import math

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._decomp import get_decompositions
from rushlight._dynamo.backends.common import aot_autograd
from rushlight._functorch._min_cut import FlowGraph
from rushlight._functorch.aot_autograd import (
    aot_export_joint_simple,
    aot_function,
    aot_module,
    aot_module_simplified,
    make_boxed_compiler,
    make_boxed_func,
)
from rushlight._functorch.compilers import memory_efficient_fusion, nop, ts_compile
from rushlight._functorch.partitioners import default_partition, min_cut_rematerialization_partition

PARTITIONS = [default_partition, min_cut_rematerialization_partition]
aten = torch.ops.aten


class Graphs:
    """A compiler that keeps what it gets."""

    def __init__(self):
        self.modules = []

    def __call__(self, module, inputs):
        module.graph.lint()
        assert all(isinstance(t, torch._subclasses.FakeTensor) for t in inputs if isinstance(t, torch.Tensor))
        self.modules.append(module)
        return module

    def targets(self, i):
        return [n.target for n in self.modules[i].graph.nodes if n.op == "call_function"]


def gradients(function, *inputs):
    """Results, and gradients of the sum of those that have some; inputs as the function left them."""
    inputs = [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs]
    given = [t * 1 if t.requires_grad else t for t in inputs]  # the program may write to them
    results = function(*given)
    results = results if isinstance(results, tuple) else (results,)
    total = sum((r.sin().sum() for r in (*results, *given) if r.requires_grad), torch.zeros(()))
    roots = [t for t in inputs if t.requires_grad]
    found = torch.autograd.grad(total, roots, allow_unused=True) if roots else ()
    return [*results, *given, *found]


def check(function, *inputs, **options):
    compiled = aot_function(function, nop, **options)
    for values in (inputs, [torch.randn_like(t).requires_grad_(t.requires_grad) for t in inputs]):
        torch.testing.assert_close(gradients(compiled, *values), gradients(function, *values))


def wanted(*shape):
    return torch.randn(*shape, requires_grad=True)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_results_and_gradients(partition):
    check(lambda x, y: (x.sin() @ y, y.exp().sum()), wanted(3, 4), wanted(4, 2), partition_fn=partition)
    check(lambda x, y: torch.softmax(x * y, -1).log(), wanted(3, 4), torch.randn(4), partition_fn=partition)
    check(lambda x: torch.sort(x)[0] * torch.topk(x, 2)[0][0], wanted(6), partition_fn=partition)
    check(lambda x: x.relu().max(0), torch.randn(3, 4), partition_fn=partition)  # nothing wants gradients


@pytest.mark.parametrize("partition", PARTITIONS)
def test_writes_and_views(partition):
    def writes(x, y):
        x.mul_(y.cos())
        return x + 1

    def views(x, y):
        z = x.view(-1)
        y.add_(1)
        return z, x, y[0], x.sum()

    for program in (writes, views):
        check(program, wanted(3, 4), wanted(3, 4), partition_fn=partition)
        check(program, wanted(3, 4), torch.randn(3, 4), partition_fn=partition)
        check(program, torch.randn(3, 4), torch.randn(3, 4), partition_fn=partition)
    x = torch.randn(3, 4)
    z, same, *_ = aot_function(views, nop)(x, torch.randn(3, 4))
    assert same is x and z.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        aot_function(writes, nop)(wanted(2), wanted(2))


def test_views_of_results_and_of_parts():
    """Results that share memory do so afterwards, and may be written to."""

    def parts(x):
        y = x * 2
        return y.view(-1), y, y[0]

    for program in (parts, lambda x: (x * 2).view(-1), lambda x: x.t()[1:]):

        def written_later(x, program=program):
            results = program(x)
            results = results if isinstance(results, tuple) else (results,)
            results[0].mul_(3)
            return results

        compiled = aot_function(program, nop)
        base = torch.arange(24.0).view(4, 6)
        for x in (base[1:, 1:4], base[:, ::2]):
            for flag in (False, True):
                given = x.detach().requires_grad_(flag)
                found = gradients(functools.partial(written_later, program=compiled), given)
                torch.testing.assert_close(found, gradients(written_later, given))


def test_inputs_that_change_their_shape_or_share_memory():
    def turned(x):
        x.t_()
        return x * 2

    def swapped(x, y):
        x.add_(1)
        return y * 2

    for flag in (False, True):
        check(turned, torch.randn(2, 3, requires_grad=flag))
    x, other = torch.arange(4.0), torch.arange(4.0)
    expected = swapped(other[:2], other[1:])
    assert torch.equal(aot_function(swapped, nop)(x[:2], x[1:]), expected) and torch.equal(x, other)


def test_what_is_kept():
    """Cheap values are computed again where that keeps less; random ones never are."""

    def program(x):
        return x.sin().cos().exp().sum()

    kept = {}
    for partition in PARTITIONS:
        graphs = Graphs()
        aot_function(program, graphs, partition_fn=partition)(wanted(8)).backward()
        forward, backward = graphs.modules
        assert not any("tangents" in n.name for n in forward.graph.nodes)
        kept[partition] = sum(n.op == "placeholder" for n in backward.graph.nodes) - 1
    assert kept == {default_partition: 3, min_cut_rematerialization_partition: 1}

    graphs = Graphs()
    torch.manual_seed(0)
    x = wanted(64)
    compiled = aot_function(lambda x: nn.functional.dropout(x, 0.5).sin(), graphs, partition_fn=PARTITIONS[1])
    result = compiled(x)
    result.sum().backward()
    assert torch.equal(x.grad == 0, result == 0) and 0 < int((result == 0).sum()) < 64


def test_compilers_are_called_once_for_such_arguments():
    graphs, inference = Graphs(), Graphs()
    compiled = aot_function(lambda x, n: x * n, graphs, inference_compiler=inference)
    x = wanted(3)
    for _ in range(3):
        compiled(x, 2).sum().backward()
    assert len(graphs.modules) == 2 and not inference.modules
    with torch.no_grad():
        assert torch.equal(compiled(x, 3), x * 3)
    assert len(graphs.modules) == 2 and len(inference.modules) == 1
    result = compiled(wanted(4), 2)
    assert len(graphs.modules) == 3  # the backward pass is compiled when it first runs
    result.sum().backward()
    assert len(graphs.modules) == 4
    torch.testing.assert_close(compiled({"a": 1}["a"] * torch.ones(2), 5), torch.full((2,), 5.0))


def test_boxed_functions():
    taken = []

    def compiler(module, inputs):
        def run(values):
            taken.append(len(values))
            found = module(*values)
            values.clear()
            return found

        run._boxed_call = True
        return run

    check(lambda x: x.sin(), wanted(3))
    aot_function(lambda x: x.sin(), compiler)(wanted(3)).sum().backward()
    assert taken == [1, 2]
    assert make_boxed_func(lambda a, b: a + b)([1, 2]) == 3
    result = aot_function(lambda x: x.sin(), make_boxed_compiler(nop))(torch.ones(1))
    assert float(result) == pytest.approx(math.sin(1))


def test_decompositions():
    graphs = Graphs()
    table = get_decompositions([aten.silu.default])
    aot_function(nn.functional.silu, graphs, decompositions=table)(torch.randn(3))
    assert aten.silu.default not in graphs.targets(0) and aten.sigmoid.default in graphs.targets(0)


@pytest.mark.parametrize("make", [lambda m: aot_module(m, nop), memory_efficient_fusion])
def test_modules(make):
    module = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.GELU(), nn.Linear(6, 2))
    other = copy.deepcopy(module)
    compiled, x = make(other), torch.randn(5, 4)
    for _ in range(2):
        module(x).sin().sum().backward()
        compiled(x).sin().sum().backward()
    for a, b in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    for a, b in zip(module.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(a, b)
    names = ["orig_module." + name for name, _ in module.named_parameters()]
    assert [name for name, _ in compiled.named_parameters()] == names


@pytest.mark.parametrize("written", [False, True])
def test_back_end_of_compile(written):
    graphs = Graphs()

    def simplified(module, inputs):
        return aot_module_simplified(module, inputs, fw_compiler=graphs)

    backend = simplified if written else aot_autograd(fw_compiler=graphs)
    module, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.randn(2, 3)
    compiled = torch.compile(module, backend=backend)
    torch.testing.assert_close(compiled(x), module(x))
    compiled(x).sum().backward()
    found = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    module(x).sum().backward()
    torch.testing.assert_close(found, [p.grad for p in module.parameters()])
    assert len(graphs.modules) == 2 and aten.relu.default in graphs.targets(0)


def test_back_ends_of_modules_run():
    """What a back end made of a module's graph is called, then and later: traces leave classes alone."""
    calls = []

    def compiler(module, inputs):
        def run(*values):
            calls.append(len(values))
            return module(*values)

        return run

    module, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.randn(2, 3)
    compiled = torch.compile(module, backend=aot_autograd(fw_compiler=compiler), fullgraph=True)
    for n in range(1, 4):
        compiled(x).sum().backward()
        assert calls.count(3) == 2 * n


def test_scripts():
    x = wanted(3)
    aot_function(lambda x: x.sin().cos().sum(), ts_compile)(x).backward()
    torch.testing.assert_close(x.grad, -x.sin().sin() * x.cos())


def test_joint_graphs():
    args = [wanted(3), torch.randn(3)]
    forward = aot_export_joint_simple(lambda x, y: [x * y], args, trace_joint=False)
    assert len(forward.graph.output_node().args[0]) == 1
    joint = aot_export_joint_simple(lambda x, y: [x * y], args, trace_joint=True)
    result, gradient = joint(*args, torch.ones(3))[:2]
    assert torch.equal(result, args[0] * args[1]) and torch.equal(gradient, args[1])
    with pytest.raises(RuntimeError, match="mutation"):
        aot_export_joint_simple(lambda x: [x.add_(1)], [torch.ones(2)], trace_joint=False)


def test_double_backward_is_refused():
    x = wanted(3)
    result = aot_function(lambda x: x.sin() * x, nop)(x)
    (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    torch.testing.assert_close(gradient.detach(), (x.cos() * x + x.sin()).detach())
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        gradient.sum().backward()


def test_minimum_cut():
    flow = FlowGraph()
    for a, b, room in [("s", "a", 3), ("s", "b", 2), ("a", "b", 1), ("a", "t", 2), ("b", "t", 4)]:
        flow.add(a, b, room)
    cost, side = flow.cut("s", "t")
    assert cost == 5 and side == {"s"}
    flow = FlowGraph()
    flow.add("s", "a", math.inf)
    flow.add("a", "t", math.inf)
    assert flow.cut("s", "t")[0] == math.inf


def test_gradients_through_writes_to_a_view():
    def program(x):
        row = x[0]
        return row.masked_fill_(torch.ones_like(row, dtype=torch.bool), 0)

    x = torch.ones(2, 2, requires_grad=True)
    aot_function(program, lambda graph, _: graph)(x.clone()).sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 0]]


class _Emptying(torch.autograd.Function):
    """Its backward pass writes to an argument."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.y = y
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        with torch.no_grad():
            ctx.y.zero_()
        return gradient * 2, None


def test_backward_passes_that_write_to_arguments():
    run = aot_function(lambda x, y: _Emptying.apply(x, y) + y, lambda graph, _: graph)
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    result = run(x, y)
    assert result.tolist() == [3, 3] and y.tolist() == [1, 1]
    result.sum().backward()
    assert y.tolist() == [0, 0] and x.grad.tolist() == [2, 2]
    y = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="create_graph=True"):
        torch.autograd.grad(run(x, y).sum(), x, create_graph=True)


def test_backward_passes_may_not_turn_arguments():
    class Turning(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.y = y
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            ctx.y.t_()
            return gradient * 2, None

    run = aot_function(lambda x, y: Turning.apply(x, y), lambda graph, _: graph)
    with pytest.raises(AssertionError, match="metadata mutated in the backward"):
        run(torch.ones(2, 2, requires_grad=True), torch.ones(2, 3))


@pytest.mark.parametrize("is_leaf", [True, False])
def test_writes_that_autograd_does_not_see(is_leaf):
    def program(x):
        x.detach().mul_(2)
        with torch.no_grad():
            x.add_(1)
        return x * 3

    leaf = torch.ones(2, requires_grad=True)
    x = leaf if is_leaf else leaf.clone()
    result = aot_function(program, lambda graph, _: graph)(x)
    assert x.tolist() == [3, 3] and result.tolist() == [9, 9]
    result.sum().backward()
    assert leaf.grad.tolist() == [3, 3]


def test_inputs_of_a_joint_graph_by_their_kind():
    from rushlight._functorch import partitioners

    seen = {}

    def partition(joint, inputs, **options):
        for kind in ("_is_primal", "_is_tangent"):
            seen[kind] = [n.name for n in joint.graph.nodes if getattr(partitioners, kind)(n)]
        return partitioners.default_partition(joint, inputs, **options)

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    function = aot_function(lambda x, y: (x * y).sin(), lambda graph, _: graph, partition_fn=partition)
    function(x, y).sum().backward()
    assert seen == {"_is_primal": ["primals_1", "primals_2"], "_is_tangent": ["tangents_1"]}
