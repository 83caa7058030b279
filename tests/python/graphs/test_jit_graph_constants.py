"""Passes of `torch._C` over graphs that work with constants and with equal operations."""

import pytest

import rushlight as torch


def after(name, function):
    graph = torch.jit.script(function).graph
    getattr(torch._C, f"_jit_pass_{name}")(graph)
    return graph


def kinds(graph):
    return [node.kind().partition("::")[2] for node in graph.nodes()]


def numbers(x: int):
    a = 2 * 3
    b = a + 2
    return b - x


def chooses(a, flag: bool):
    b = 2 + 1
    c, d = 1, 2
    if bool(a):
        c = b + 2
    else:
        c = b - 2
    if 1 == 2:
        d = 1 // 0
    else:
        d = 2 * 2
    return a + c + d, flag and False


def drawn():
    return torch.randn([2]) + 1


def fails(flag: bool):
    y = 0
    if flag:
        y = 1 // 0
    return y


def test_constants_are_computed():
    graph = after("constant_propagation", numbers)
    assert kinds(graph) == ["Constant", "sub"]
    assert graph.findNode("prim::Constant").output().toIValue() == 8


def test_branches_are_decided():
    graph = after("constant_propagation", chooses)
    (left,) = graph.findAllNodes("prim::If")
    assert left.outputsSize() == 1
    assert [n.output().toIValue() for b in left.blocks() for n in b.nodes()] == [5, 1]
    assert "eq" not in kinds(graph) and "__and__" not in kinds(graph)
    values = [n.output().toIValue() for n in graph.nodes() if n.kind() == "prim::Constant"]
    assert 4 in values and False in values


def written_to():
    a = torch.zeros([1])
    b = a.view(-1)
    b.add_(1)
    return a, 1 + 1


def test_what_may_be_written_to_is_no_constant():
    graph = after("constant_propagation", written_to)
    assert {"zeros", "view", "add_"} <= set(kinds(graph)) and "add" not in kinds(graph)


def test_random_numbers_and_failures_stay():
    assert "randn" in kinds(after("constant_propagation", drawn))
    graph = after("constant_propagation", fails)
    assert graph.findNode("aten::floordiv") is not None


def twice(x, y):
    a = x * y + 1
    b = x * y + 1
    return a * b, torch.rand(2) + torch.rand(2)


def leaves(x):
    return x + 1, x + 1


def writes(x):
    a = x + 1
    b = x + 1
    a.add_(1)
    return a * b


def reads(x):
    a = x.exp()
    x.add_(1)
    return a * x.exp()


@pytest.mark.parametrize(
    ("function", "kind", "count"),
    [
        (twice, "mul", 2), (twice, "add", 2), (twice, "rand", 2), (leaves, "add", 2), (writes, "add", 2),
        (reads, "exp", 2),
    ],
)  # fmt: skip
def test_equal_operations_are_shared_where_nobody_sees_that(function, kind, count):
    before = kinds(torch.jit.script(function).graph)
    after_it = kinds(after("cse", function))
    assert after_it.count(kind) == count and (function is not twice or len(after_it) < len(before))


def test_pooled_constants():
    def function(x):
        if bool(x):
            y = x + 1
        else:
            y = x - 1
        return y * 1 + 2

    graph = after("constant_pooling", function)
    assert kinds(graph)[:3].count("Constant") == 2 and kinds(graph).count("Constant") == 2
    assert all(n.kind() != "prim::Constant" for b in graph.findNode("prim::If").blocks() for n in b.nodes())
    again = torch._C.parse_ir(str(graph))
    assert str(again) == str(graph)
