"""What nodes of exports and symbolic traces tell of the sizes of results."""

import copy
import math
import operator

import pytest

import rushlight as torch
from rushlight._dynamo.source import ConstantSource
from rushlight.export import Dim, export
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.fx.experimental.sym_node import SymNode, method_to_operator
from rushlight.fx.experimental.symbolic_shapes import (
    ShapeEnv,
    free_symbols,
    free_unbacked_symbols,
    is_concrete_int,
)


class Program(torch.nn.Module):
    def forward(self, x, y):
        both = torch.cat([x, y])
        return both.repeat(2, 1)[1:], both[: both.size(0) // 2], x @ torch.ones(3, 4), torch.ones(2)


@pytest.fixture(scope="module")
def exported():
    shapes = {0: Dim("a", min=2)}, {0: Dim("b", min=2)}
    return export(Program(), (torch.randn(6, 3), torch.randn(4, 3)), dynamic_shapes=shapes)


def returned(program):
    return [node.meta["val"] for node in program.graph.output_node().args[0]]


@pytest.mark.parametrize("decomposed", [False, True])
def test_sizes_are_expressions_with_the_numbers_of_the_example(exported, decomposed):
    program = exported.run_decompositions() if decomposed else exported
    repeated, half, product, constant = returned(program)
    assert [str(n) for n in repeated.shape] == ["((a * 2) + (b * 2)) - 1", "3"]
    assert [str(n) for n in half.shape] == ["(a + b) // 2", "3"] and str(product.shape[0]) == "a"
    assert list(constant.shape) == [2] and is_concrete_int(constant.shape[0])
    assert list(map(int, repeated.shape)) == [19, 3] and product.shape[0].node.hint == 6
    assert isinstance(product.size(0), torch.SymInt) and product.shape[0] == 6


def test_a_printed_program_shows_them(exported):
    assert 'x: "f32[a, 3]", y: "f32[b, 3]"' in str(exported)
    assert 'f32[a + b, 3]"' in str(exported)


def test_the_symbols_of_a_value(exported):
    repeated, _, product, constant = returned(exported)
    assert free_symbols(repeated) == {"a", "b"} and free_symbols(product.shape[0]) == {"a"}
    assert free_symbols(constant) == set() and free_unbacked_symbols(repeated) == set()
    assert free_symbols(copy.deepcopy(product)) == {"a"}


def test_numbers_of_the_data_are_symbols_too():
    class Positive(torch.nn.Module):
        def forward(self, x):
            return x[x > 0] * 2

    (found,) = returned(export(Positive(), (torch.randn(5),)))
    assert free_unbacked_symbols(found) == free_symbols(found) != set()


def test_symbolic_traces_have_them():
    traced = make_fx(lambda a, b: a.new_empty(a.shape[0] + b.shape[0]), tracing_mode="symbolic")(
        torch.randn(5), torch.randn(4)
    )
    made = next(n for n in traced.graph.nodes if n.target is torch.ops.aten.new_empty.default)
    total = next(n for n in traced.graph.nodes if n.target is operator.add)
    assert made.meta["val"].shape[0].node.expr == total.meta["val"].node.expr


def test_sizes_are_read_by_an_operator(exported):
    class Found(torch.nn.Module):
        def forward(self, x):
            return torch.zeros(x.nonzero().shape[0])

    for program in (exported, export(Found(), (torch.ones(3),)), exported.run_decompositions()):
        read = [n for n in program.graph.nodes if n.target is torch.ops.aten.sym_size.int]
        assert read and not any(n.op == "call_method" for n in program.graph.nodes)
        assert all(isinstance(n.meta["val"], torch.SymInt) for n in read)


FINDERS = {
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "rows": lambda x: x[x[:, 0] > 0],
    "selected": lambda x: x.masked_select(x[0] > 0),
    "unique": lambda x: x.unique(),
}


@pytest.mark.parametrize("name", FINDERS)
def test_as_many_elements_are_found_as_there_can_be(name):
    class Finder(torch.nn.Module):
        def forward(self, x):
            return FINDERS[name](x)

    for most, shapes in ((6, None), (30, ({0: Dim("rows", max=10)},)), (None, ({0: Dim("rows")},))):
        ranges = export(Finder(), (torch.ones(2, 3),), dynamic_shapes=shapes).range_constraints
        wanted = math.inf if most is None else most // 3 if name == "rows" else most
        assert (ranges["u0"].lower, ranges["u0"].upper) == (0, wanted)


def test_numbers_are_made_of_nodes():
    symbols = ShapeEnv()
    size = torch.SymInt(SymNode(symbols.create_symbol(6, source=ConstantSource("n")), symbols, int, hint=6))
    half = (size + 1) // 2
    assert half == 3 and str(half) == "(s0 + 1) // 2" and half.node.require_hint() == 3
    assert method_to_operator("floordiv")(size, 2).node.expr == (size // 2).node.expr
    assert symbols.var_to_val == {"s0": 6} and free_symbols(torch.sym_max(half, 2)) == {"s0"}
    assert str(symbols.create_symintnode(half.node.expr, hint=3)) == str(half)


def test_static_programs_have_numbers():
    for value in returned(export(Program(), (torch.randn(6, 3), torch.randn(4, 3)))):
        assert all(type(n) is int for n in value.shape)
