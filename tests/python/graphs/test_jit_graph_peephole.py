"""`_jit_pass_peephole`: what it takes out of graphs, what it leaves, and that results stay."""

import pytest

import rushlight as torch
from rushlight import Tensor


def of_lists(x: int, y: int):
    values = [x, y, 3]
    return len(values), values[1], values[-1], len(values[1:]), values[::-1]


def of_dicts(x: int, y: int):
    table = {"a": x, "b": y}
    return table["b"], len(table)


def of_numbers(x: int):
    return x + 0, 1 * x, int(x), x == x, (x - 0) // 1


def of_equals(x: list[int], y: str):
    return x == x, y != y


def of_choices(x: bool, y: int | None):
    if x and True:
        z = True
    else:
        z = False
    return z, y is None


def of_convolutions(x: Tensor, w: Tensor):
    return torch.conv2d(x, w).dim()


@pytest.mark.parametrize(
    ("program", "given", "gone"),
    [
        (of_lists, (1, 2), ("aten::len", "aten::__getitem__", "aten::slice")),
        (of_dicts, (1, 2), ("prim::DictConstruct", "aten::__getitem__", "aten::len")),
        (
            of_numbers,
            (4,),
            ("aten::add", "aten::mul", "aten::Int", "aten::eq", "aten::sub", "aten::floordiv"),
        ),
        (of_equals, ([1], "a"), ("aten::eq", "aten::ne")),
        (of_choices, (True, None), ("prim::If", "aten::__and__")),
        (of_convolutions, (torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)), ("aten::conv2d", "aten::dim")),
    ],
)
def test_what_is_simpler_takes_the_place(program, given, gone):
    scripted = torch.jit.script(program)
    graph, wanted = scripted.graph, scripted(*given)
    kinds = {node.kind() for node in graph.nodes()}
    assert kinds & set(gone)
    torch._C._jit_pass_peephole(graph)
    assert not {node.kind() for node in graph.nodes()} & set(gone)
    if program is not of_choices:
        assert torch._C._jit_interpret_graph(torch._C.parse_ir(str(graph)), given) == wanted


def appended(x: int):
    values = [x, 1]
    values.append(2)
    return len(values), values[0]


def repeated_keys(x: int, key: str):
    table = {"a": x, key: 2}
    return table["a"], len(table)


def missing(x: int):
    return {"a": x}["b"], [x][3], [x, 2][x]


def sums(x: Tensor):
    return x + 0, x + 0.0, x / 1


def written(x: Tensor):
    y = x + 0
    y.add_(1)
    return x * 2, y * 2


@pytest.mark.parametrize("program", [appended, repeated_keys, missing, sums, written])
def test_what_may_differ_stays(program):
    graph = torch.jit.script(program).graph
    before = [node.kind() for node in graph.nodes()]
    torch._C._jit_pass_peephole(graph)
    assert [node.kind() for node in graph.nodes()] == before


def chained(x: Tensor):
    return (x + 0) * 1 - 5, len(x.size()), x.type_as(x).t().t().sum()


def test_known_types_of_tensors_allow_more():
    for dtype, left in ((torch.float32, 0), (torch.int64, 0), (torch.bool, 1)):
        graph = torch.jit.script(chained).graph
        torch._C._jit_pass_peephole(graph)
        assert {"aten::add", "aten::len"} <= {node.kind() for node in graph.nodes()}
        value = next(graph.inputs())
        value.setType(torch._C.TensorType.create_from_tensor(torch.ones(2, 2, dtype=dtype)))
        torch._C._jit_pass_peephole(graph, disable_shape_peepholes=True)
        assert {"aten::add", "aten::len"} <= {node.kind() for node in graph.nodes()}
        torch._C._jit_pass_peephole(graph)
        kinds = [node.kind() for node in graph.nodes()]
        assert kinds.count("aten::add") == left and "aten::len" not in kinds and "aten::t" not in kinds
