"""Passes over graphs: calls written out, unused operations removed, values numbered again."""

import rushlight as torch
from rushlight import nn


@torch.jit.script
def scaled(x, factor: int = 2):
    y = x * factor
    return y + 1


@torch.jit.script
def chosen(x):
    if bool(x.sum() > 0):
        return x
    return -x


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.moved(x) * self.weight

    def moved(self, x):
        return x + self.weight


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Weighted()
        self.stack = nn.Sequential(Weighted(), nn.ReLU())

    def forward(self, x):
        unused = x.neg()  # noqa: F841 - what the pass removes
        return scaled(self.stack(self.part(x)), factor=3) + chosen(x)


def kinds(graph):
    return [node.kind() for node in graph.nodes()]


def test_calls_are_written_out_where_what_is_called_returns_at_its_end():
    script = torch.jit.script(Outer())
    assert kinds(script.graph).count("prim::CallMethod") == 2
    for graph in (script.inlined_graph, script.forward.inlined_graph):
        found = kinds(graph)
        assert "prim::CallMethod" not in found and found.count("aten::relu") == 1
        assert found.count("aten::mul") == 3 and found.count("aten::add") == 4
        (call,) = [node for node in graph.nodes() if node.kind() == "prim::CallFunction"]
        assert call.inputsAt(0).node()["name"] == "chosen"


def test_a_graph_is_inlined_in_place_and_swept():
    graph = torch.jit.script(Outer()).graph
    torch._C._jit_pass_inline(graph)
    assert "aten::neg" in kinds(graph)
    torch._C._jit_pass_dce(graph)
    assert "aten::neg" not in kinds(graph) and "aten::relu" in kinds(graph)


def test_what_changes_something_else_is_not_removed():
    @torch.jit.script
    def program(x):
        y = x.clone()
        x.add_(1)
        numbers = [1]
        numbers.append(2)
        if bool(x.sum() > 0):
            x.mul_(2)
        z = y + 1  # noqa: F841
        return x

    graph = program.graph
    torch._C._jit_pass_dce(graph)
    found = kinds(graph)
    assert {"aten::add_", "aten::append", "prim::If"} <= set(found)
    assert "aten::add" not in found and "aten::clone" not in found


def test_the_graph_of_a_run_is_swept():
    def program(x):
        x.neg()
        return x.clone().add_(2)

    graph, _ = torch.jit._get_trace_graph(program, (torch.ones(2),))
    torch._C._jit_pass_dce(graph)
    assert "aten::neg" not in kinds(graph) and {"aten::clone", "aten::add_"} <= set(kinds(graph))


def test_values_are_numbered_again_in_a_copy():
    graph = scaled.graph
    made = torch._C._jit_pass_canonicalize(graph)
    names = [value.debugName() for node in made.nodes() for value in node.outputs()]
    assert names == ["2", "3", "4"] and made is not graph  # its two inputs have names of the program
