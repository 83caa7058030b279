"""Graphs as text: what is printed can be read again, and a graph that no script made can be run and saved."""

import io

import pytest

import rushlight
from rushlight._C import _create_function_from_graph, _jit_interpret_graph, parse_ir
from rushlight.testing import assert_close

BRANCHES = """graph(%x.1 : Double(5, 5),
      %sizes : int[],
      %pairs : Dict(str, (int, Tensor?)),
      %c : bool):
  %y : Double(5, 5, strides=[5, 1], requires_grad=0, device=cpu) = aten::relu(%x.1)
  %z : Tensor, %n : int = prim::If(%c)
    block0():
      %a : int = prim::Constant[value=-3]()
      -> (%y, %a)
    block1():
      %b : int = prim::Constant[value=3]()
      -> (%x.1, %b)
  %s : str = prim::Constant[value="a \\"b\\"\\n"]()
  %r : (Tensor, int, str) = prim::TupleConstruct(%z, %n, %s)
  return (%r)
"""
LOOP = """graph(%x.1 : Tensor, %n : int):  # counts to n, but no further than 3
  %yes : bool = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %y : Tensor = prim::Loop(%n, %yes, %x.1)
    block0(%i : int, %sum : Tensor):
      %next : Tensor = aten::add(%sum, %i, %two)
      %go : bool = aten::lt(%i, %two)
      -> (%go, %next)
  return (%y)
"""


def through_a_file(function):
    stream = io.BytesIO()
    rushlight.jit.save(function, stream)
    stream.seek(0)
    return rushlight.jit.load(stream)


def test_text_is_read_as_it_was_printed():
    graph = parse_ir(BRANCHES)
    assert str(graph) == BRANCHES
    x, sizes, pairs, _ = graph.inputs()
    assert x.type().sizes() == [5, 5] and x.type().dtype() is rushlight.float64
    assert sizes.type().annotation_str == "List[int]"
    assert pairs.type().annotation_str == "Dict[str, Tuple[int, Optional[Tensor]]]"
    assert len(graph.findAllNodes("prim::Constant")) == 3
    use, given = x.uses()
    assert use.user is graph.findNode("aten::relu") and use.offset == 0
    assert given.user.kind() == "prim::Return" and given.isAfter(use)


def test_the_graph_of_a_script_is_read():
    @rushlight.jit.script
    def function(x, n: int):
        y = x
        for i in range(n):
            y = y + i
        return [y * 2, x] if n > 2 else [x, y]

    assert str(parse_ir(str(function.graph))) == str(function.graph)


def test_branches_run():
    function = _create_function_from_graph("forward", parse_ir(BRANCHES))
    x = rushlight.randn(5, 5, dtype=rushlight.float64)
    for run in (function, through_a_file(function)):
        for chosen, tensor, number in ((True, x.relu(), -3), (False, x, 3)):
            result = run(x, [1], {}, chosen)
            assert_close(result[0], tensor)
            assert result[1:] == (number, 'a "b"\n')


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 9])
def test_loops_run(turns):
    expected = 1.0 + 2 * sum(range(min(turns, 3)))
    assert _jit_interpret_graph(parse_ir(LOOP), (rushlight.ones(1), turns)).tolist() == [expected]


def test_numbers_are_of_python():
    text = """graph(%a : int, %b : int, %l : int[]):
      %c : int = aten::floordiv(%a, %b)
      %d : int = aten::__getitem__(%l, %c)
      %n : int = aten::len(%l)
      %e : bool = aten::lt(%d, %n)
      %f : bool = aten::__not__(%e)
      %g : float = aten::Float(%d)
      %r : (bool, float) = prim::TupleConstruct(%f, %g)
      return (%r)"""
    assert _jit_interpret_graph(parse_ir(text), (5, 2, [1, 2, 7])) == (True, 7.0)


@pytest.mark.parametrize(
    "dtype, value",
    [
        ("Float", 1234.5),
        ("Float", float("-inf")),
        ("BFloat16", 123.5),
        ("Int", 12345),
        ("Long", -17),
        ("Short", 12345),
    ],
)
def test_tensors_of_one_value(dtype, value):
    text = f"graph():\n  %1 : {dtype}(requires_grad=0, device=cpu) = prim::Constant[value={{{value}}}]()\n"
    text += "  return (%1)\n"
    graph = parse_ir(text, True)
    tensor = graph.findNode("prim::Constant").t("value")
    assert tensor.item() == value and tensor.dim() == 0 and str(graph) == text
    assert_close(_create_function_from_graph("forward", graph)(), tensor)
    with pytest.raises(RuntimeError, match="parse_tensor_constants"):
        parse_ir(text)
    with pytest.raises(RuntimeError, match="is no number"):
        parse_ir(text.replace(str(value), "invalid"), True)


@pytest.mark.parametrize(
    "text, said",
    [
        (
            "graph(%a : Tensor):\n  %b : Tensor = aten::mul(%a, %z)\n  return (%b)",
            "nothing gives %z in line 2",
        ),
        ("graph(%a : Tensor):\n  %b : Tensor = aten::mul(%a\n  return (%b)", "expected , but found return"),
        ("graph(%a : Tensor):\n", "expected more but found the end"),
        ("graph(%a : Tensor)!", "cannot read '!'"),
        ("graph(%a :):\n return (%a)", "expected a type or a value"),
    ],
)
def test_what_is_no_graph_is_refused(text, said):
    with pytest.raises(RuntimeError) as error:
        parse_ir(text)
    assert said in str(error.value)


def test_operators_that_there_are_not():
    text = "graph(%a : Tensor):\n  %b : Tensor = aten::no_such(%a)\n  return (%b)"
    with pytest.raises(RuntimeError, match="no operator aten::no_such"):
        _create_function_from_graph("forward", parse_ir(text))


@pytest.mark.parametrize("make", [lambda: rushlight.nn.BatchNorm2d(2), lambda: rushlight.nn.Conv2d(2, 3, 1)])
def test_the_graph_of_a_run_is_a_function(make):
    """With the inputs of the graph, which `return_inputs` gives as they were before the run."""
    model, x = make(), rushlight.randn(2, 2, 4, 4)
    graph, result, inputs = rushlight.jit._get_trace_graph(model, (x,), return_inputs=True)
    assert len(inputs) == len(list(graph.inputs()))
    for run in (graph, str(graph)):
        function = _create_function_from_graph("forward", parse_ir(run) if isinstance(run, str) else run)
        assert_close(function(*(tensor.clone() for tensor in inputs)), result)
        assert_close(through_a_file(function)(*(tensor.clone() for tensor in inputs)), result)
