"""Graphs of programs: traced, changed, run again; scripts and archives."""

import io

import rushlight as torch
from rushlight import fx, jit, nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).relu() + 1


class Shapes(fx.Interpreter):
    def run_node(self, n: fx.Node) -> object:
        result = super().run_node(n)
        n.meta["shape"] = result.shape if isinstance(result, torch.Tensor) else None
        return result


def replace_relu(module: nn.Module) -> fx.GraphModule:
    traced = fx.symbolic_trace(module)
    for node in list(traced.graph.nodes):
        if node.op == "call_method" and node.target == "relu":
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(torch.nn.functional.gelu, node.args, node.kwargs)
            node.replace_all_uses_with(new)
            traced.graph.erase_node(node)
    traced.graph.lint()
    traced.recompile()
    return traced


changed = replace_relu(Net())
names: list[str] = [node.name for node in changed.graph.nodes if node.users]
shapes = Shapes(changed)
result: torch.Tensor = shapes.run(torch.ones(2, 3))
code: str = changed.code
found: list[fx.Node] = changed.graph.find_nodes(op="call_function", target=torch.nn.functional.gelu)
assert result.shape == (2, 4) and names and "gelu" in code and len(found) == 1

scripted = jit.script(Net())
buffer = io.BytesIO()
jit.save(scripted, buffer)
buffer.seek(0)
loaded = jit.load(buffer)
assert torch.equal(loaded(torch.ones(2, 3)), scripted(torch.ones(2, 3)))
