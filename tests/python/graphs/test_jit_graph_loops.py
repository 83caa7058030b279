"""Loops and early returns in graphs of scripts: the form that PyTorch gives them, which runs by itself."""

import re

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._command.names import is_aliased


def counted(n: int, x: int):
    for i in range(n):
        x = x + i
    for i in range(2, n, 3):
        x -= i
    return x


def repeated(n: int):
    i = 0
    while i < n:
        i += 2
    return i


def listed(values: list[int], words: str, table: dict[str, int]):
    total = 0
    for value in values:
        total += value
    for i, value in enumerate(values):
        total += i * value
    for a, b in zip(values, values):
        total += a * b
    for key in table:
        total += table[key]
    for _key, value in table.items():
        total += value
    for letter in words:
        total += ord(letter)
    return total


def nested(n: int):
    total = 0
    for i in range(n):
        last = 0
        for j in range(i):
            if j > 1:
                last = j
            else:
                total += 1
        total += last
    return total


def unrolled(x: int):
    for step in (1, 2, 3):
        x = x * step
    for i, step in enumerate((4, 5)):
        x = x * step - i
    return x


def early(x: int):
    if x > 3:
        if x > 5:
            return 1
        return x * 2
    if x < 0:
        return -x
    y = x + 1
    return y


def collected(values: list[int]):
    return [value + 1 for value in values]


PROGRAMS = [
    (counted, [(5, 1), (0, 3)]),
    (repeated, [(5,), (-1,)]),
    (listed, [([3, 4], "abc", {"a": 1}), ([], "", {})]),
    (nested, [(5,), (0,)]),
    (unrolled, [(2,)]),
    (early, [(6,), (4,), (-2,), (0,)]),
    (collected, [([1, 2],), ([],)]),
]
# What PyTorch moves about or shares, and the language itself: constants above all.
NOT_COMPARED = ("prim::Constant", "aten::__range_length", "prim::Uninitialized")


def steps(graph):
    """The operations of a graph and of its blocks in their order, with how many values are handed on."""
    found = []
    for node in graph.nodes():
        if node.kind() not in NOT_COMPARED:
            found.append(node.kind())
        for block in node.blocks():
            taken, given = list(block.inputs()), list(block.outputs())
            found.append((node.kind(), len(list(node.inputs())), len(taken), len(given), steps(block)))
    return found


@pytest.mark.skipif(is_aliased(), reason="compares with PyTorch, which the alias replaces")
@pytest.mark.parametrize(("program", "given"), PROGRAMS)
def test_graphs_are_those_of_pytorch(program, given):
    oracle = pytest.importorskip("torch")
    assert steps(torch.jit.script(program).graph) == steps(oracle.jit.script(program).graph)


@pytest.mark.parametrize(("program", "given"), [p for p in PROGRAMS if p[0] not in (listed, collected)])
def test_graphs_compute_what_the_script_does(program, given):
    scripted = torch.jit.script(program)
    again = torch._C.parse_ir(str(scripted.graph))
    for arguments in given:
        assert torch._C._jit_interpret_graph(again, arguments) == scripted(*arguments)


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Tanh()])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(2, 1)})

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        for _name, layer in self.named.items():
            x = layer(x)
        return x


def test_loops_over_modules_are_written_out():
    graph = torch.jit.script(Stacked()).graph
    called = [n for n in graph.nodes() if n.kind() == "prim::CallMethod"]
    assert len(called) == 6 and graph.findNode("prim::Loop") is None
    names = re.findall(r'prim::GetAttr\[name="(\w+)"\]', str(graph))
    assert names == ["layers", "0", "1", "layers", "0", "1", "named", "a", "b"]


def converted(x: torch.Tensor):
    return int(x), float(x), bool(x)


def test_conversions_are_operators():
    graph = torch.jit.script(converted).graph
    assert [n.kind() for n in graph.nodes()][:3] == ["aten::Int", "aten::Float", "aten::Bool"]
    assert "prim::Constant[value=1]()" in str(torch.jit.script(counted).graph)
