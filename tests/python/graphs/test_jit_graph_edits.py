"""Graphs that programs change: nodes and values of their own, and passes that replace operations."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

PASSES = torch._C


def kinds(graph):
    return [node.kind() for node in graph.nodes()]


@torch.jit.script
def scaled(x):
    return x * 4


@torch.jit.script
def thrice(x: torch.Tensor, times: int):
    return x + x + x


def test_nodes_are_inserted_and_removed():
    graph = scaled.graph.copy()
    (product,) = graph.findAllNodes("aten::mul")
    assert product.matches("aten::mul(Tensor self, Scalar other) -> Tensor") or product.matches(
        product.schema()
    )
    with graph.insert_point_guard(product):
        (result,) = graph.insertGraph(thrice.graph, list(product.inputs()))
    next(graph.outputs()).replaceAllUsesWith(result)
    product.destroy()
    assert "aten::mul" not in kinds(graph) and kinds(graph).count("aten::add") == 2
    assert torch._C._jit_interpret_graph(scaled.graph, (torch.ones(1),)).item() == 4


def test_a_graph_is_made_node_by_node():
    graph = torch._C.Graph()
    x = graph.addInput("x")
    two = graph.insertConstant(2)
    node = graph.insertNode(graph.create("aten::mul", [x, two]))
    graph.registerOutput(node.output())
    assert [(use.user, use.offset) for use in x.uses()] == [(node, 0)] and node.inputsAt(1).toIValue() == 2
    assert torch._C._jit_interpret_graph(graph, (torch.ones(2),)).tolist() == [2, 2]
    copied = torch._C.Graph()
    known = {x: copied.addInput()}
    for old in graph.nodes():
        made = copied.appendNode(copied.createClone(old, known.__getitem__))
        known.update(zip(old.outputs(), made.outputs(), strict=True))
    copied.registerOutput(known[node.output()])
    assert kinds(copied) == kinds(graph) and copied.param_node().outputsSize() == 1
    with pytest.raises(RuntimeError, match="still used"):
        node.destroy()
    with pytest.raises(ValueError, match="None input"):
        graph.create("prim::Constant", [None])


def written(x, mask, i: int):
    x[0, 1:] = 3
    x[mask] = x[mask] * 2
    x[i] += 1
    return x[..., i], x[None, i, 1], x[1:, i]


def test_places_of_tensors_are_views_and_indices():
    found = kinds(torch.jit.script(written).graph)
    wanted = ["aten::select", "aten::slice", "aten::copy_", "aten::index", "aten::index_put_", "aten::add_"]
    assert [kind for kind in dict.fromkeys(found) if kind in wanted] == wanted
    text = str(torch.jit.script(written).graph)
    assert "aten::__getitem__" not in text and "_set_item" not in text and "Ellipsis" not in text


def test_what_indices_take_is_what_runs():
    def taken(x, mask):
        return x[1, 0:2], x[mask], x[..., 1], x[:, 1], x[1, 2], x[None, 1]

    graph = torch.jit.script(taken).graph
    graph.unit = None  # so that the graph runs in place of the text that it was made from
    x, mask = torch.arange(12.0).view(3, 4), torch.tensor([True, False, True])
    for found, wanted in zip(torch._C._jit_interpret_graph(graph, (x, mask)), taken(x, mask), strict=True):
        assert torch.equal(found, wanted)


def in_place(x):
    y = x + 1
    F.celu(y, inplace=True)
    z = torch.tensor([1, 2])
    z.zero_()
    z.add_(3)
    numbers = [1, 2]
    numbers.append(3)
    numbers[0] = 5
    return y, z, numbers


def seen_before(x):
    y = torch.tensor([2, 2])
    z = y + 2
    y.add_(2)
    first = x[0]
    first.mul_(2)
    return y, z


def test_writes_that_nothing_else_sees_become_values():
    graph = torch.jit.script(in_place).graph
    assert "aten::celu_" in kinds(graph)
    PASSES._jit_pass_remove_mutation(graph)
    assert not {"aten::celu_", "aten::zero_", "aten::add_", "aten::append"} & set(kinds(graph))
    PASSES._jit_pass_functional_to_inplace_activation(graph)
    assert "aten::celu_" in kinds(graph)
    graph = torch.jit.script(seen_before).graph
    PASSES._jit_pass_remove_mutation(graph)
    assert {"aten::add_", "aten::mul_"} <= set(kinds(graph))


def few_turns():
    y = 0
    for i in range(3):
        y -= i
    return y


def some_turns(x: int):
    y = 0
    for i in range(x):
        y -= i
    return y


def test_loops_are_unrolled():
    graph = torch.jit.script(few_turns).graph
    PASSES._jit_pass_loop_unrolling(graph)
    PASSES._jit_pass_constant_propagation(graph)
    assert kinds(graph) == ["prim::Constant"] and next(graph.outputs()).toIValue() == -3
    graph = torch.jit.script(some_turns).graph
    PASSES._jit_pass_loop_unrolling(graph)
    first, second = graph.findAllNodes("prim::Loop")
    assert len(first.findAllNodes("aten::sub")) == 8 and len(second.findAllNodes("aten::sub")) == 1
    graph.unit = None
    for n in (0, 5, 8, 21):
        assert torch._C._jit_interpret_graph(graph, (n,)) == some_turns(n)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)

    def forward(self, x):
        return self.bn(self.conv(x))


def affine(x, y, z):
    return (x + y) * z


def test_patterns_are_rewritten():
    graph = torch.jit.script(affine).graph
    line = graph.findNode("aten::add").sourceRange()
    PASSES._jit_pass_custom_pattern_based_rewrite_graph(
        "graph(%x, %y, %z, %n):\n  %t = aten::add(%x, %y, %n)\n  %r = aten::mul(%t, %z)\n  return (%r)",
        "graph(%x, %y, %z, %n):\n  %r = my::affine(%x, %y, %z, %n)\n  return (%r)",
        graph,
        value_name_pairs=[("r", "t")],
    )
    made = graph.findNode("my::affine")
    assert kinds(graph) == ["prim::Constant", "my::affine"] and made.sourceRange() == line
    assert made.inputsAt(3).toIValue() == 1  # which the script's text left out
    module = torch.jit.script(Net())
    PASSES._jit_pass_custom_pattern_based_rewrite(
        'graph(%self, %x):\n  %c = match::module[name="Conv2d"](%self)\n'
        '  %y = prim::CallMethod[name="forward"](%c, %x)\n  %b = match::module[name="BatchNorm2d"](%self)\n'
        '  %z = prim::CallMethod[name="forward"](%b, %y)\n  return (%z)',
        "graph(%self, %x):\n  %z = my::conv_bn(%self, %x)\n  return (%z)",
        module._c,
    )
    assert "my::conv_bn" in kinds(module.graph)


def product(x, weight, bias):
    return torch.matmul(x, weight.t()) + bias, torch.addmm(bias, x, weight)


def test_products_become_layers_and_sums():
    graph = torch.jit.script(product).graph
    PASSES._jit_pass_fuse_linear(graph)
    assert "aten::linear" in kinds(graph) and "aten::matmul" not in kinds(graph)
    PASSES._jit_pass_decompose_ops(graph)
    assert "aten::mm" in kinds(graph) and "aten::addmm" not in kinds(graph)


class Drops(nn.Module):
    def forward(self, x):
        return F.dropout(x, training=self.training) + 1


def test_dropouts_are_removed():
    module = torch.jit.script(Drops())
    with pytest.raises(RuntimeError, match="training mode is not yet supported"):
        PASSES._jit_pass_remove_dropout(module._c)
    module = torch.jit.freeze(module.eval())
    PASSES._jit_pass_remove_dropout(module._c)
    assert "aten::dropout" not in kinds(module.graph)
