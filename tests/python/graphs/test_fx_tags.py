"""Splitting by tags, patterns with lists of arguments, where nodes come from, and types of items."""

import operator
from typing import NamedTuple

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.experimental.rewriter import RewritingTracer
from rushlight.fx.operator_schemas import create_type_hint, type_matches
from rushlight.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
from rushlight.fx.passes.infra.pass_manager import PassManager
from rushlight.fx.passes.split_module import split_module
from rushlight.fx.passes.split_utils import getattr_recursive, setattr_recursive, split_by_tags
from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher
from rushlight.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
from rushlight.fx.passes.utils.source_matcher_utils import get_source_partitions
from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

F = nn.functional
X = torch.linspace(-1, 1, 6).view(2, 3)


class Three(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x):
        y = self.a(x)
        return self.c(self.b(y) + y)


def tagged():
    module = fx.symbolic_trace(Three())
    for node in module.graph.nodes:
        node.meta["name"] = node.name
        node.tag = {"a": "red", "b": "blue"}.get(node.name, "green")
    return module


def test_split_by_tags():
    module = tagged()
    split, names = split_by_tags(module, ["red", "blue", "green"], return_fqn_mapping=True)
    assert [name for name, _ in split.named_children()] == ["red", "blue", "green"]
    assert names == {"a": "red.a", "b": "blue.b", "c": "green.c"}
    assert torch.equal(split(X), module(X))
    for child in split.children():
        assert all(n.meta["name"] == n.name for n in child.graph.nodes if n.op != "output")
    with pytest.raises(AssertionError, match="'blue' is not one of"):
        split_by_tags(tagged(), ["red", "green"])


def test_split_of_exported_programs_keeps_what_they_return():
    module = torch.export.export(Three(), (X,)).module()
    for node in module.graph.nodes:
        node.tag = "first"
    assert torch.equal(split_by_tags(module, ["first"])(X), module(X))


def test_parts_that_return_tuples():
    module = tagged()
    split = split_module(module, module, lambda node: node.tag, tuple_return=True)
    assert all(isinstance(m.graph.output_node().args[0], tuple) for m in split.children())
    assert torch.equal(split(X), module(X))


def test_attributes_by_path():
    model = nn.Sequential(nn.ModuleList([nn.Linear(1, 1)]))
    assert getattr_recursive(model, "0.0.weight") is model[0][0].weight
    assert getattr_recursive(model, "0.5") is None
    setattr_recursive(model, "0.0.note", 3)
    assert model[0][0].note == 3


def test_lists_of_a_pattern():
    pool = torch.ops.aten.max_pool2d_with_indices.default
    assert pool._schema.arguments[3].default_value == [0, 0]
    assert "padding=0" in str(pool._schema)
    given = fx.symbolic_trace(lambda x: pool(x, [2, 2], stride=[2, 2]))
    pattern = fx.symbolic_trace(lambda x, kernel, stride, padding: pool(x, kernel, stride, padding))
    match = SubgraphMatcher(pattern.graph).match(given.graph)
    assert [list(value) for value in match[0].placeholder_nodes[1:]] == [[2, 2], [2, 2], [0, 0]]
    fixed = fx.symbolic_trace(lambda x, kernel: pool(x, kernel, [1, 2]))
    assert not SubgraphMatcher(fixed.graph).match(given.graph)


def test_where_exported_nodes_come_from():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.b(F.relu(self.a(x))).mean()

    graph = torch.export.export(Net(), (X,)).module().graph
    found = get_source_partitions(graph, ["linear", "relu"])
    assert [len(found["linear"]), len(found["relu"])] == [2, 1]
    kinds = {n.meta["torch_fn"] for n in graph.nodes if "torch_fn" in n.meta}
    assert ("linear_2", "builtin_function_or_method.linear") in kinds
    assert ("mean_1", "method_descriptor.mean") in kinds


def test_types_of_items():
    class Pair(NamedTuple):
        x: int
        y: float

    class Takes(nn.Module):
        def forward(self, a: tuple[int, str], b: list[float], c: Pair, d: tuple[int, ...]):
            return a[1], b[0], c.y, d[3]

    graph = fx.symbolic_trace(Takes()).graph
    annotate_getitem_nodes(graph)
    found = {n.name: n.type for n in graph.nodes if n.target in (operator.getitem, getattr)}
    assert found == {"getitem": str, "getitem_1": float, "getattr_1": float, "getitem_2": int}


def test_types_that_match():
    parameter = nn.Parameter
    assert create_type_hint([parameter, torch.Tensor]) == list[torch.Tensor]
    assert create_type_hint((int, int)) == tuple[int, ...]
    assert type_matches(list[torch.Tensor], create_type_hint((parameter, torch.Tensor)))
    assert not type_matches(list[torch.Tensor], list[int])


def test_a_pass_that_returns_nothing_is_named():
    def good(module):
        return type("Result", (), {"graph_module": module, "modified": False})()

    def bad(module):
        return None

    with pytest.raises(Exception, match=r"'bad' pass after.*good"):
        PassManager([good, bad])(fx.symbolic_trace(Three()))


@fx.wrap
def wrapped(x):
    return x + 1


def test_wrapped_functions_stay_calls_in_rewritten_programs():
    class Calls(nn.Module):
        def forward(self, x):
            assert x > 0, "x is positive"
            return wrapped(x)

    tracer = RewritingTracer()
    module = fx.GraphModule(tracer.root if hasattr(tracer, "root") else nn.Module(), tracer.trace(Calls()))
    assert "wrapped(x)" in module.code and "_assert" in module.code
    assert module(torch.tensor(1)) == 2


def test_types_of_tensors():
    known, partly = TensorType((1, 2)), TensorType((1, Dyn))
    assert (
        str(known) == "TensorType[(1, 2)]"
        and TensorType[1, 2] == known != partly
        and known.__args__ == (1, 2)
    )
    assert is_consistent(known, partly) and is_consistent(partly, known) and is_consistent(known, Dyn)
    assert is_more_precise(known, partly) and not is_more_precise(partly, known)
    assert not is_consistent(known, TensorType((1,))) and not is_consistent(known, TensorType((1, 3)))
    assert not is_more_precise(Dyn, known) and is_more_precise(3, Dyn) and not is_consistent(int, known)
    module = fx.symbolic_trace(Annotated())
    assert next(iter(module.graph.nodes)).type == partly
    assert torch.equal(module(X), X + 1)


class Annotated(nn.Module):
    def forward(self, x: TensorType((1, Dyn))):
        return x + 1


def test_exported_patterns_with_names():
    class Pattern(nn.Module):
        def forward(self, x, weight):
            product = x @ weight
            found = F.relu(product)
            return found, {"product": product, "relu": found}

    class Target(nn.Module):
        def forward(self, x, weight):
            return F.relu((x + 1) @ weight) * 2

    given = (torch.ones(2, 3), torch.ones(3, 3))
    pattern, target = (
        torch.export.export(m, given).module(check_guards=False) for m in (Pattern(), Target())
    )
    for module in (pattern, target):
        module.graph.eliminate_dead_code()
    (match,) = SubgraphMatcherWithNameNodeMap(pattern).match(target.graph)
    assert {name: node.target for name, node in match.name_node_map.items()} == {
        "product": torch.ops.aten.mm.default,
        "relu": torch.ops.aten.relu.default,
    }


def test_exported_graphs_are_patterns():
    class Pattern(nn.Module):
        def forward(self, x):
            return F.relu(x) * 2

    pattern = torch.export.export(Pattern(), (X,)).module()
    given = fx.symbolic_trace(lambda x: torch.ops.aten.mul.Tensor(torch.ops.aten.relu.default(x.sin()), 2))
    assert len(SubgraphMatcher(pattern.graph, ignore_literals=True).match(given.graph)) == 1
