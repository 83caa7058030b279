"""What torchao asks of the library beside quantisation: layers in exported graphs, patterns, operators."""

import operator

import pytest

import rushlight
from rushlight import nn
from rushlight._higher_order_ops.out_dtype import out_dtype
from rushlight._inductor.constant_folding import constant_fold
from rushlight._inductor.pattern_matcher import (
    Arg,
    CallFunction,
    KeywordArg,
    PatternMatcherPass,
    register_graph_pattern,
)
from rushlight.fx.passes.utils.source_matcher_utils import get_source_partitions
from rushlight.utils._ordered_set import OrderedSet

aten = rushlight.ops.aten


class _Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.pool = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2)
        self.up, self.head = nn.ConvTranspose2d(4, 2, 2), nn.Linear(5, 6)
        self.line = nn.Conv1d(2, 2, 3, padding=1)
        self.last = nn.Linear(6, 3, bias=False)

    def forward(self, x):
        x = self.head(self.up(self.pool(self.bn(self.conv(x)))))
        return self.last(self.line(x[:, :, 0]))


@pytest.mark.parametrize("train", [True, False])
def test_exported_modules_show_layers(train):
    model, x = _Net().train(train), rushlight.randn(2, 3, 10, 10)
    exported = rushlight.export.export(model, (x,)).module()
    found = [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]
    for layer in ("conv2d", "batch_norm", "max_pool2d", "conv1d"):
        assert f"aten.{layer}.default" in found
    assert found.count("aten.linear.default") == 2
    assert "aten.conv_transpose2d.input" in found
    assert not any(
        name in " ".join(found) for name in ("addmm", "convolution", "native_batch_norm", "detach")
    )
    state = model.bn.running_mean.clone()
    result = exported(x)
    moved = model.bn.running_mean.clone()
    model.bn.running_mean.copy_(state)
    assert rushlight.equal(result, model(x))
    assert rushlight.equal(model.bn.running_mean, moved)
    parts = get_source_partitions(exported.graph, [nn.Linear, nn.Conv2d])
    assert {kind: len(uses) for kind, uses in parts.items()} == {nn.Linear: 2, nn.Conv2d: 1}


def test_dropout_is_one_node():
    exported = rushlight.export.export(nn.Dropout(0.3).train(), (rushlight.ones(4, 4),)).module()
    (node,) = [n for n in exported.graph.nodes if n.op == "call_function"]
    assert (node.target, node.args[1:]) == (aten.dropout.default, (0.3, True))


def test_patterns_find_nodes_and_are_replaced():
    def program(x, y):
        return rushlight.relu(rushlight.add(x, y)) * rushlight.relu(x)

    graph = rushlight.fx.symbolic_trace(program)
    passes = PatternMatcherPass()
    pattern = CallFunction(rushlight.relu, CallFunction(rushlight.add, Arg(), KeywordArg("other")))

    @register_graph_pattern(pattern, pass_dict=passes)
    def replace(match, first, other):
        node = match.output_node()
        with match.graph.inserting_before(node):
            made = match.graph.call_function(rushlight.maximum, (first, other))
        node.replace_all_uses_with(made)
        match.erase_nodes()

    assert passes.apply(graph) == 1
    graph.recompile()
    x, y = rushlight.randn(3), rushlight.randn(3)
    assert rushlight.equal(graph(x, y), rushlight.maximum(x, y) * rushlight.relu(x))
    # A part that something else reads is no match: its value would be lost.
    graph = rushlight.fx.symbolic_trace(lambda x, y: rushlight.relu(s := rushlight.add(x, y)) + s)
    assert passes.apply(graph) == 0


def test_constants_are_computed_once():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(rushlight.ones(2))

        def forward(self, x):
            return x * rushlight.exp(self.weight)

    graph = rushlight.fx.symbolic_trace(Net())
    x = rushlight.randn(2)
    expected = graph(x)
    constant_fold(graph)
    assert [n.target for n in graph.graph.nodes if n.op == "call_function"] == [operator.mul]
    assert rushlight.equal(graph(x), expected)


def test_products_of_bytes_do_not_wrap():
    bytes_ = rushlight.full((2, 300), 100, dtype=rushlight.int8)
    result = out_dtype(aten.mm.default, rushlight.int32, bytes_, bytes_.t())
    assert result.dtype == rushlight.int32
    assert result[0, 0].item() == 3000000
    with pytest.raises(ValueError, match="OpOverload"):
        out_dtype(rushlight.mm, rushlight.int32, bytes_, bytes_.t())


def test_results_have_the_type_asked_for():
    bytes_ = rushlight.tensor([100, -100], dtype=rushlight.int8)
    for op, factor, expected in (
        (aten.mul.Scalar, 2.7, [270, -270]),
        (aten.mul.Tensor, bytes_, [10000, 10000]),
        (aten.div.Tensor, bytes_ + 3, [0, 1]),
    ):
        result = out_dtype(op, rushlight.int32, bytes_, factor)
        assert result.dtype == rushlight.int32 and result.tolist() == expected
    with pytest.raises(ValueError, match="functional operator"):
        out_dtype(aten.add_.Tensor, rushlight.int32, bytes_, bytes_)
    for op in (aten.topk.default, aten.split_copy.Tensor):
        with pytest.raises(ValueError, match="return a single tensor"):
            out_dtype(op, rushlight.int32, bytes_, 1)


def test_grouped_products_are_products():
    x, weights = rushlight.randn(6, 4), rushlight.randn(2, 4, 3)
    ends = rushlight.tensor([2, 6], dtype=rushlight.int32)
    expected = rushlight.cat([x[:2] @ weights[0], x[2:] @ weights[1]])
    assert rushlight.allclose(rushlight._grouped_mm(x, weights, offs=ends), expected)
    with pytest.raises(RuntimeError, match="offsets"):
        rushlight._grouped_mm(x, weights)


def test_methods_are_operators_too():
    x = rushlight.randn(2, 3)
    assert aten.to.dtype(x, rushlight.float64).dtype == rushlight.float64
    assert aten.to.dtype_layout(x, dtype=rushlight.float16).dtype == rushlight.float16
    assert aten.sym_size.int(x, 1) == 3
    assert aten.dim.default(x) == 2
    assert rushlight.equal(aten.lerp.Scalar(x, x * 2, 0.5), x * 1.5)
    assert rushlight._has_compatible_shallow_copy_type(x, x)


def test_ordered_sets_keep_their_order():
    one = OrderedSet([3, 1, 2])
    assert list(one | OrderedSet([0, 1])) == [3, 1, 2, 0]
    assert list(one.intersection([2, 3])) == [3, 2]
    assert one.pop() == 2
    assert list(OrderedSet[int]([1, 1])) == [1]


class _ScaledByChannel(nn.Module):
    """A pattern as ``prepare_qat_pt2e`` puts in place of a convolution and its normalisation."""

    def forward(self, x, weight, gain, mean, var):
        y = rushlight.conv2d(x, weight * gain.reshape([-1, 1, 1, 1])) / gain.reshape([1, -1, 1, 1])
        return nn.functional.batch_norm(y, mean, var, training=True)


def test_exported_patterns_fit_other_widths():
    def samples(width):
        shapes = ((2, 3, 5, 5), (width, 3, 1, 1), (width,), (width,), (width,))
        return tuple(rushlight.rand(shape) + 0.5 for shape in shapes)

    pattern = rushlight.export.export(_ScaledByChannel(), samples(1), strict=True).module()
    sizes = [node.args[1] for node in pattern.graph.nodes if node.target is aten.view.default]
    assert sizes == [[-1, 1, 1, 1], [1, -1, 1, 1]]
    copy = rushlight.fx.GraphModule(pattern, pattern.graph)
    for node in list(copy.graph.nodes):
        if node.op == "call_module":  # a check of the sizes that it was exported with
            copy.graph.erase_node(node)
    copy.recompile()
    inputs = samples(6)
    expected = _ScaledByChannel()(*(x.clone() for x in inputs))
    rushlight.testing.assert_close(copy(*inputs), expected)


def test_what_nodes_of_normalisation_hold():
    """Observers are put behind nodes whose value is known to be a tensor."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    for train in (True, False):
        exported = rushlight.export.export(model.train(train), (rushlight.randn(2, 3, 5, 5),))
        for graph in (exported.graph, exported.module().graph):
            parts = [n for n in graph.nodes if n.target in (operator.getitem, aten.batch_norm.default)]
            assert parts and all(isinstance(n.meta["val"], rushlight.Tensor) for n in parts)


def test_erased_nodes_keep_their_literals():
    graph = rushlight.fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(aten.clamp.default, (x, -1, 1), {"other": x, "axis": 3})
    graph.erase_node(node)
    assert node.args == (None, -1, 1) and node.kwargs == {"other": None, "axis": 3}
    assert not x.users
