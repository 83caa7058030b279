"""Graphs of modules that came from PyTorch's archives: the operations are those of PyTorch's graphs."""

import collections
import io

import pytest

import rushlight
from rushlight._command.names import is_aliased

oracle = pytest.importorskip("torch", reason="PyTorch writes the archives")
import torchscript_programs as programs  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(is_aliased(), reason="the alias replaces PyTorch, whose archives these are"),
]


def loaded(module):
    """A module of PyTorch as PyTorch and as Rushlight load it."""
    buffer = io.BytesIO()
    oracle.jit.save(module, buffer)
    return oracle.jit.load(io.BytesIO(buffer.getvalue())), rushlight.jit.load(io.BytesIO(buffer.getvalue()))


def kinds(block):
    """How often each operation is in a graph; constants are written where they are used."""
    found = collections.Counter()
    for node in block.nodes():
        found[node.kind()] += node.kind() != "prim::Constant"
        for inner in node.blocks():
            found += kinds(inner)
    return found


@pytest.mark.parametrize(("name", "way"), [("resnet", "script"), ("resnet", "trace"), ("mlp", "script")])
def test_operations_are_those_of_pytorch(name, way):
    module, inputs, _ = programs.programs()[name]
    module = module.eval()
    made = oracle.jit.script(module) if way == "script" else oracle.jit.trace(module, inputs)
    expected, found = loaded(made)
    parts = dict(found.named_modules())
    for path, part in expected.named_modules():
        for method in map(part._c._get_method, part._c._method_names()):
            graph = parts[path]._c._get_method(method.name).graph
            assert kinds(graph) == kinds(method.graph), f"{path}.{method.name}"
            first = next(graph.inputs())
            assert str(first.type()) == part._c.qualified_name


def test_calls_are_written_out():
    module, inputs, _ = programs.programs()["resnet"]
    expected, found = loaded(oracle.jit.trace(module.eval(), inputs))
    wanted = kinds(expected.inlined_graph)
    graph = found.inlined_graph
    assert kinds(graph)["aten::_convolution"] == wanted["aten::_convolution"] > 3
    assert "prim::CallMethod" not in kinds(graph)
    assert {k: n for k, n in kinds(graph).items() if k.startswith("aten::")} == {
        k: n for k, n in wanted.items() if k.startswith("aten::")
    }


class Flow(oracle.nn.Module):
    def forward(self, x: oracle.Tensor, n: int, k: float = float("inf")):
        values, places = x.max(1)
        total = 0
        while n > 0:
            if n % 2 == 0:
                total += n
            n -= 1
        words = [str(i) for i in range(total)]
        pair = (values, len(words))
        if x.dim() > 5:
            raise ValueError("too many")
        return pair[0], places, k == float("-inf")


def test_loops_branches_and_types():
    expected, found = loaded(oracle.jit.script(Flow()))
    graph = found.graph
    assert kinds(graph) == kinds(expected.graph)
    assert [str(v.type()) for v in graph.inputs()][1:] == ["Tensor", "int", "float"]
    (largest,) = graph.findAllNodes("aten::max")
    assert largest.outputsSize() == 2
    assert found.graph is graph and found.forward.graph is graph
    assert found(rushlight.ones(1, 2), 3)[0].tolist() == [1.0]
