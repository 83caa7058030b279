"""Parts of graphs: what back ends take, constants, one form of calls, asserts as nodes."""

import operator
import random

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.passes import operator_support
from rushlight.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from rushlight.fx.passes.utils import fuser_utils
from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher


def supports(*names):
    return operator_support.create_op_support(lambda modules, node: node.name.split("_")[0] in names)


def fused(program, *names, **options):
    module = fx.symbolic_trace(program)
    partitioner = CapabilityBasedPartitioner(module, supports(*names), **options)
    return partitioner.propose_partitions(), partitioner.partition_and_fuse()


def test_supported_parts_become_modules():
    def program(x):
        y = torch.relu(x + 1)
        return (y.neg() + y) * 2

    parts, module = fused(program, "add", "relu")
    assert [[n.name for n in p.nodes] for p in parts] == [["add", "relu"]]
    assert "fused_0" in module.code and "relu" not in module.code
    x = torch.randn(4)
    torch.testing.assert_close(module(x), program(x))


def test_no_part_depends_on_itself_through_others():
    def program(x):
        a = x + 1
        b = a.neg()  # not supported
        return a + b, a * 2

    parts, module = fused(program, "add", "mul")
    for part in parts:
        assert fuser_utils.validate_partition(list(part.nodes))
    assert not any({"add", "add_1"} <= {n.name for n in part.nodes} for part in parts)
    x = torch.randn(4)
    torch.testing.assert_close(module(x), program(x))


def test_parts_of_one_node():
    alone, _ = fused(lambda x: x.relu().neg(), "relu")
    assert not alone
    allowed, module = fused(lambda x: x.relu().neg(), "relu", allows_single_node_partition=True)
    assert len(allowed) == 1 and "fused_0" in module.code


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs_keep_their_meaning(seed):
    choose = random.Random(seed)

    def program(x):
        values = [x]
        for _ in range(12):
            a, b = choose.choice(values), choose.choice(values)
            values.append(a + b if choose.random() < 0.6 else a.neg())
        return values[-1], values[-2], values[-4]

    module = fx.symbolic_trace(program)
    x = torch.randn(3)
    expected = module(x)
    CapabilityBasedPartitioner(module, supports("add")).partition_and_fuse()
    module.graph.lint()
    torch.testing.assert_close(module(x), expected)


def _random_program(seed):
    choose = random.Random(seed)
    steps = [(choose.random() < 0.55, choose.random(), choose.random()) for _ in range(24)]

    def program(x, y):
        values = [x, y]
        for adds, a, b in steps:
            a, b = values[int(a * len(values))], values[int(b * len(values))]
            values.append(a + b if adds else a.neg())
        pair = values[-1].split(2)
        return pair[0] + pair[1], *values[-3:]

    return program


@pytest.mark.parametrize("options", [{}, {"skip_horizontal_fusion": True}])
@pytest.mark.parametrize("seed", range(12))
def test_parts_are_those_of_pytorch(seed, options):
    oracle = pytest.importorskip("torch")
    from torch.fx.passes import operator_support as their_support
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner as Theirs

    proposed = []
    for lib, made, support in (
        (torch, CapabilityBasedPartitioner, operator_support),
        (oracle, Theirs, their_support),
    ):
        module = lib.fx.symbolic_trace(_random_program(seed))
        supported = support.create_op_support(
            lambda modules, node: node.name.split("_")[0] in ("add", "split")
        )
        partitioner = made(module, supported, allows_single_node_partition=True, **options)
        proposed.append([{n.name for n in part.nodes} for part in partitioner.propose_partitions()])
    assert proposed[0] == proposed[1] and proposed[0]


def test_what_computes_nothing_leaves_the_ends_of_parts():
    def program(x):
        x = torch.ops.aten.view(x, [2, 2])
        x = torch.ops.aten.permute(torch.ops.aten.permute(x, [1, 0]) + 1.0, [1, 0]) + 1.0
        return torch.ops.aten.permute(torch.ops.aten.permute(x, [1, 0]), [1, 0])

    module = fx.symbolic_trace(program)
    still = ["torch.ops.aten.view", "torch.ops.aten.permute"]
    partitioner = CapabilityBasedPartitioner(
        module, supports("add", "view", "permute"), True, non_compute_ops=still
    )
    parts = partitioner.propose_partitions()
    assert [part.size() for part in parts] == [7]
    partitioner.remove_bookend_non_compute_ops(parts)
    assert [[n.name for n in part.nodes] for part in parts] == [["add", "permute_1", "add_1"]]
    x = torch.randn(4)
    torch.testing.assert_close(partitioner.fuse_partitions(parts)(x), program(x))


def test_a_match_that_would_depend_on_itself_is_none():
    def pattern(a, b, c):
        first = torch.nn.functional.linear(a, b)
        return first, first * c

    def program(x, w, y, gated):
        first = torch.nn.functional.linear(x, w)
        return first * (torch.sigmoid(first) if gated else torch.sigmoid(y))

    matcher = SubgraphMatcher(fx.symbolic_trace(pattern).graph)
    traced = [fx.symbolic_trace(program, {"gated": gated}) for gated in (True, False)]
    assert [len(matcher.match(module.graph)) for module in traced] == [0, 1]


def test_support_by_table_and_dtype():
    module = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    from rushlight.fx.passes.shape_prop import ShapeProp

    ShapeProp(module).propagate(torch.ones(1, 2))
    modules, (_, linear, relu, _) = dict(module.named_modules()), module.graph.nodes
    table = operator_support.OperatorSupport({torch.typename(modules["0"]): None})
    assert table.is_node_supported(modules, linear) and not table.is_node_supported(modules, relu)
    by_dtype = operator_support.OpSupports.decline_if_input_dtype(torch.float32)
    assert not by_dtype.is_node_supported(modules, relu)
    named = operator_support.OpSupports.decline_if_node_in_names({"_1"})
    both, either = operator_support.chain(table, named), operator_support.any_chain(table, named)
    assert not both.is_node_supported(modules, relu) and both.is_node_supported(modules, linear)
    assert not either.is_node_supported(modules, relu)


def test_nodes_are_put_in_order():
    from rushlight.fx.passes.tools_common import legalize_graph, stable_topological_sort

    for sort in (legalize_graph, stable_topological_sort):
        module = fx.symbolic_trace(lambda x: (x + 1) * 2)
        x, add, mul, _ = module.graph.nodes
        add.prepend(mul)
        with pytest.raises(RuntimeError, match="used before it has been defined"):
            module.graph.lint()
        sort(module).graph.lint()
        assert [n.name for n in module.graph.nodes] == ["x", "add", "mul", "output"]


class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Parameter(torch.randn(2)), nn.Parameter(torch.randn(2))
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        scale = self.w + self.v
        return self.lin(x) * scale, x + scale.neg()


def test_constants_are_folded():
    from rushlight.fx.experimental.const_fold import split_const_subgraphs

    module = Constants()
    folded = split_const_subgraphs(module)
    x = torch.randn(3, 2)
    torch.testing.assert_close(folded(x), module(x))
    torch.testing.assert_close(folded(x + 1), module(x + 1))
    targets = [n.target for n in folded.graph.nodes if n.op == "call_function"]
    assert targets.count(operator.add) == 1 and torch.neg not in targets  # x + folded is left
    kept = split_const_subgraphs(nn.Sequential(nn.ReLU()))
    assert kept(x).shape == x.shape


def test_calls_take_one_form():
    from rushlight.fx.experimental.normalize import NormalizeArgs, NormalizeOperators

    module = fx.symbolic_trace(lambda x: torch.transpose(torch.add(x, x), 0, 1))
    x = torch.randn(2, 3)
    named = NormalizeArgs(module).transform()
    assert "torch.transpose(input = add, dim0 = 0, dim1 = 1)" in named.code
    torch.testing.assert_close(named(x), module(x))
    plain = NormalizeOperators(module).transform()
    assert "add = x + x" in plain.code
    torch.testing.assert_close(plain(x), module(x))


class Asserting(nn.Module):
    def forward(self, x):
        assert x.sum() > 0, "not positive"
        return x + 1


def test_asserts_become_nodes():
    from rushlight.fx.experimental.rewriter import RewritingTracer

    tracer = RewritingTracer()
    module = fx.GraphModule(Asserting(), tracer.trace(Asserting()))
    assert module(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="not positive"):
        module(-torch.ones(2))


def test_annotations_and_sizes():
    from rushlight.fx.annotate import annotate
    from rushlight.fx.passes.graph_manipulation import get_size_of_all_nodes, replace_target_nodes_with

    traced = fx.symbolic_trace(lambda x: annotate(x + 1, int))
    assert "add : int = x + 1" in traced.code
    with pytest.raises(RuntimeError, match="already had a type on it"):
        fx.symbolic_trace(lambda x: annotate(annotate(x + 1, int), int))
    module = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 2)))
    get_size_of_all_nodes(module, (torch.ones(3, 4),))
    assert [n.size_bytes for n in module.graph.nodes if n.op == "call_module"] == [(24, 24 + 40)]
    other = fx.symbolic_trace(lambda x: torch.relu(x))
    replace_target_nodes_with(other, "call_function", torch.relu, "call_function", torch.neg)
    assert other(torch.ones(1)).item() == -1
