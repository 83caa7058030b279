"""Editing graphs, and what graph modules do: copies, files, errors."""

import collections.abc
import copy
import importlib
import io
import pickle
import re

import pytest

import rushlight as torch
from rushlight import fx, nn


def sequence():
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.BatchNorm1d(3)))


@pytest.fixture
def traced():
    return fx.symbolic_trace(sequence())


def insert_sigmoid(module):
    node = next(n for n in module.graph.nodes if n.target == "1")
    with module.graph.inserting_after(node):
        sigmoid = module.graph.call_function(torch.sigmoid, (node,))
        node.replace_all_uses_with(sigmoid, lambda user: user is not sigmoid)
    module.recompile()
    return sigmoid


def test_nodes_are_inserted_and_uses_replaced(traced):
    x = torch.randn(5, 2)
    traced.eval()
    before = traced.get_submodule("1")(traced.get_submodule("0")(x))
    sigmoid = insert_sigmoid(traced)
    traced.graph.lint()
    assert [u.name for u in sigmoid.users] == ["_2_0"] and sigmoid.prev.name == "_1"
    expected = traced.get_submodule("2.0")(before.sigmoid())
    assert torch.equal(traced(x), expected)


def test_order_of_nodes(traced):
    nodes = list(traced.graph.nodes)
    with traced.graph.inserting_before(nodes[2]):
        made = [traced.graph.call_function(torch.neg, (nodes[1],)) for _ in range(3)]
    with traced.graph.inserting_before():
        first = traced.graph.get_attr("0.weight")
    order = list(traced.graph.nodes)
    assert order == [first, *nodes[:2], *made, *nodes[2:]]
    assert sorted(order[::-1]) == order and list(reversed(traced.graph.nodes)) == order[::-1]
    assert traced.graph.find_nodes(op="call_function", target=torch.neg) == made
    made[0].append(made[2])
    assert list(traced.graph.nodes)[3:6] == [made[0], made[2], made[1]] and made[2] < made[1]


def test_erasing_and_linting(traced):
    first = next(iter(traced.graph.nodes))
    with pytest.raises(
        RuntimeError, match=r"Tried to erase Node input_1 but it still had 1 users in the graph"
    ):
        traced.graph.erase_node(first)
    traced.delete_submodule("0")
    with pytest.raises(RuntimeError, match="references nonexistent attribute 0"):
        traced.graph.lint()
    other = fx.Graph()
    stranger = other.placeholder("x")
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        traced.graph.call_function(torch.neg, (stranger,))
        traced.graph.owning_module = None
        traced.graph.lint()
    graph = fx.Graph()
    late = graph.placeholder("y")
    with graph.inserting_before(late):
        graph.call_function(torch.neg, (late,))
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()


def test_dead_code():
    def program(x):
        unused = x + 1
        unused * 2
        torch._assert(x.shape[0] == 2, "two")
        return x

    module = fx.symbolic_trace(program)
    assert module.graph.eliminate_dead_code() and not module.graph.eliminate_dead_code()
    module.recompile()
    assert "add" not in module.code and "torch._assert(" in module.code


def test_arguments_refuse_to_change_in_place(traced):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.cat, ([x, x],), {"dim": 1})
    with pytest.raises(TypeError, match="'immutable_list' object does not support mutation"):
        node.args[0].append(x)
    with pytest.raises(TypeError, match="'immutable_dict' object does not support mutation"):
        node.kwargs["dim"] = 2
    node.args = ([x, x, x],)
    node.update_kwarg("dim", 0)
    assert node.kwargs == {"dim": 0} and list(x.users) == [node]
    node.args = ([],)
    assert not x.users


def test_modules_are_made_from_dicts():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_module("deep.lin", (x,))
    graph.output(graph.call_function(torch.add, (y, graph.get_attr("deep.b"))))
    module = fx.GraphModule({"deep.lin": nn.Linear(2, 2), "deep.b": torch.ones(2)}, graph, "Made")
    assert type(module).__name__ == "Made" and module(torch.ones(2)).shape == (2,)
    assert sorted(module.state_dict()) == ["deep.b", "deep.lin.bias", "deep.lin.weight"]
    with pytest.raises(RuntimeError, match="that target was not provided in"):
        fx.GraphModule({}, graph)


def test_submodules_come_and_go(traced):
    assert traced.add_submodule("a.b.c", nn.ReLU()) and isinstance(traced.a.b.c, nn.ReLU)
    assert traced.delete_submodule("a.b.c") and not traced.delete_submodule("a.b.c")
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "a") and hasattr(traced, "0")


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "save"])
def test_copies_compute_the_same(traced, how):
    insert_sigmoid(traced)
    traced.eval()
    if how == "deepcopy":
        made = copy.deepcopy(traced)
    elif how == "pickle":
        made = pickle.loads(pickle.dumps(traced))
    else:
        file = io.BytesIO()
        torch.save(traced, file)
        file.seek(0)
        made = torch.load(file, weights_only=False)
    x = torch.randn(5, 2)
    assert made.code == traced.code and torch.equal(made(x), traced(x))
    assert made.graph is not traced.graph and made.get_parameter("0.weight") is not traced.get_parameter(
        "0.weight"
    )
    copied = copy.deepcopy(made.graph)
    assert str(copied) == str(made.graph) and all(n.graph is copied for n in copied.nodes)
    assert str(pickle.loads(pickle.dumps(copied))) == str(copied)


def test_a_folder_holds_a_module(traced, tmp_path, monkeypatch):
    insert_sigmoid(traced)
    traced.eval()
    with pytest.warns(UserWarning, match=r"saved as pickled files instead: \['1', '2'\]"):
        traced.to_folder(tmp_path / "traced_package", "Net")
    source = (tmp_path / "traced_package" / "module.py").read_text()
    assert "class Net(torch.nn.Module)" in source and "setattr(self, '0', Linear(" in source
    assert not re.search(r"^(import|from) torch\b", source, re.MULTILINE), "the alias may be off"
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("traced_package.module")
    assert module.torch is torch
    x = torch.randn(5, 2)
    assert torch.equal(module.Net().eval()(x), traced(x))


def test_interpreter_and_transformer(traced):
    x = torch.randn(5, 2)
    traced.eval()
    assert torch.equal(fx.Interpreter(traced).run(x), traced(x))

    class Negating(fx.Transformer):
        def call_module(self, target, args, kwargs):
            return torch.neg(*args) if target == "1" else super().call_module(target, args, kwargs)

    made = Negating(traced).transform()
    assert "neg = torch.neg(_0)" in made.code and made(x).shape == (5, 3)

    class Counting(fx.Interpreter):
        seen = 0

        def run_node(self, n):
            self.seen += 1
            return super().run_node(n)

    counting = Counting(traced)
    counting.run(x)
    assert counting.seen == len(traced.graph.nodes)


def test_errors_name_the_node_and_the_line(capsys):
    module = fx.symbolic_trace(lambda x: x.no_such_method())
    with pytest.raises(AttributeError, match="no_such_method"):
        module(torch.ones(2))
    assert "line 5 of the traced Module's generated forward function" in capsys.readouterr().err
    with pytest.raises(
        AttributeError, match=r"While executing %no_such_method : \[num_users=1\] = call_method"
    ):
        fx.Interpreter(module).run(torch.ones(2))


def test_code_may_be_transformed(traced):
    insert = lambda body: ["import math as mathematics\n", *body]  # noqa: E731
    with traced.graph.on_generate_code(lambda current: insert):
        traced.recompile()
        assert "    import math as mathematics" in traced.code
    traced.recompile()
    assert "mathematics" not in traced.code


def test_hooks_see_edits(traced):
    made, erased = [], []
    traced._register_create_node_hook(made.append)
    traced._register_erase_node_hook(erased.append)
    sigmoid = insert_sigmoid(traced)
    sigmoid.replace_all_uses_with(sigmoid.args[0])
    traced.graph.erase_node(sigmoid)
    assert made == [sigmoid] and erased == [sigmoid]
    with pytest.raises(AssertionError, match="create_node hook must be a callable"):
        traced._register_create_node_hook(3)


def test_gradients_reach_the_parameters(traced):
    traced(torch.randn(5, 2)).square().sum().backward()
    assert traced.get_parameter("0.weight").grad is not None


@fx.wrap
def leaf_function(x, scale):
    return x * scale if x.sum() > 0 else x


fx.wrap("len")


def test_wrapped_functions_stay_calls():
    module = fx.symbolic_trace(lambda x: leaf_function(x, 2) + len(x))
    assert [n.target for n in module.graph.nodes if n.op == "call_function"][:2] == [leaf_function, len]
    assert module(torch.ones(3)).tolist() == [5.0] * 3
    assert fx.symbolic_trace(module).code == module.code
    with pytest.raises(NotImplementedError, match="wrap must be called at the top level of a module"):
        fx.wrap("print")


def test_names_that_are_missing_are_warned_of(traced):
    with pytest.warns(UserWarning, match="Attempted to insert a get_attr Node with no underlying reference"):
        traced.graph.get_attr("0.nothing")
    with pytest.warns(UserWarning, match="Failed to fetch module nothing!"):
        traced.graph.get_attr("nothing.here")
    with pytest.warns(
        UserWarning, match="Attempted to insert a call_module Node with no underlying reference"
    ):
        traced.graph.call_module("nothing")


class Row:
    def __init__(self, a, b):
        self.a, self.b = a, b


def test_nested_inputs_survive_retracing_and_pickling():
    from rushlight.fx import PH
    from rushlight.fx._pytree import register_pytree_flatten_spec
    from rushlight.utils import _pytree

    _pytree.register_pytree_node(Row, lambda r: ([r.a, r.b], None), lambda values, _: Row(*values))
    register_pytree_flatten_spec(Row, lambda r, _: [r.a, r.b])
    cases = [
        (lambda x: sum(x), [PH, PH, PH]),
        (lambda x: {k: [i + 1 for i in v] for k, v in x.items()}, {"a": (PH, PH), 5: [PH], "c": []}),
        (lambda x: x.a + x.b, Row(PH, PH)),
        (lambda x: x.a["p"] + x.b, Row({"p": PH}, PH)),
    ]
    for program, inputs in cases:
        values = _pytree.tree_map(lambda x: torch.randn(3) if x is PH else x, inputs)
        expected = program(values)
        once = fx.symbolic_trace(program, concrete_args={"x": inputs})
        twice = fx.symbolic_trace(once)
        again = pickle.loads(pickle.dumps(fx.symbolic_trace(twice, concrete_args={"x": inputs})))
        assert "tree_flatten_spec" in once.code and "tree_flatten_spec" not in twice.code
        for module in (once, twice, again):
            torch.testing.assert_close(module(values), expected)


def test_methods_can_be_wrapped_while_tracing():
    from rushlight.fx._symbolic_trace import _wrapped_methods_to_patch

    table = torch.randn(8, 8)
    _wrapped_methods_to_patch.append((torch.Tensor, "__getitem__"))
    try:
        module = fx.symbolic_trace(lambda x: table[:, : x.size(0)])
    finally:
        _wrapped_methods_to_patch.pop()
    assert module(torch.zeros(4)).shape == (8, 4) and table[1].shape == (8,)


def test_mutation_is_refused_on_demand():
    class Strict(fx.Tracer):
        check_mutable_operations = True

    for program in (lambda x: torch.log_(x), lambda x: torch.sigmoid(x, out=torch.empty(2))):
        with pytest.raises(RuntimeError, match="Tried to trace mutable operation aten::"):
            Strict().trace(program)


def tidy_(x):
    return x


def test_overloads_that_write_are_refused_and_functions_of_programs_are_not():
    class Checked(fx.Tracer):
        check_mutable_operations = True

        def is_leaf_module(self, module, name):
            return False

    def graph_of(call):
        class Program(nn.Module):
            def forward(self, x):
                return call(x)

        return Checked().trace(Program())

    for overload in (torch.ops.aten.relu_.default, torch.ops.aten.abs.out):
        with pytest.raises(RuntimeError, match=f"Tried to trace mutable operation {overload._schema.name}"):
            graph_of(lambda x, f=overload: f(x, out=x) if "out" in str(f) else f(x))
    assert len(graph_of(torch.ops.aten.relu.default).nodes) == 3

    scaled = graph_of(lambda x: nn.functional.normalize(x, out=x))
    assert [n.target for n in scaled.nodes][1] is nn.functional.normalize

    def record(x):
        return x.tracer.create_proxy("call_function", tidy_, (x,), {})

    assert [n.target for n in graph_of(record).nodes][1] is tidy_


def test_classes_may_be_built_from_proxies():
    class Pair(metaclass=fx.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

    module = fx.symbolic_trace(lambda x: Pair(x, x + 1))
    assert module(torch.ones(1)).right.item() == 2
    assert fx.symbolic_trace(lambda x: (x, Pair(1, 2)))(3)[1].left == 1


def test_deep_graphs_are_copied():
    graph = fx.Graph()
    x = graph.placeholder("x")
    for _ in range(3000):
        x = graph.call_function(torch.relu, (x,))
    graph.output(x)
    for made in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert len(made.nodes) == 3002


def test_operators_of_torch_ops_are_traced():
    def program(a):
        return torch.ops.aten.cat.default((torch.ops.aten.sigmoid(a), a))

    module = fx.symbolic_trace(program)
    assert "torch.ops.aten.cat.default((sigmoid, a))" in module.code
    assert pickle.loads(pickle.dumps(module))(torch.ones(2)).shape == (4,)


def test_annotations_become_code():
    def program(
        x: "Row", f: collections.abc.Callable[[int], str], g: list[int] | None = None
    ) -> tuple[int, ...]:
        return f(x) + g

    code = fx.symbolic_trace(program).code
    assert "f : collections_abc_Callable[[int],str]" in code and "g : list[int]|NoneType = None" in code
    assert ") -> tuple[int,_]:" in code.replace("Ellipsis", "_")


def test_ranges_of_profiles_are_nodes():
    graph = fx.Graph()
    x = graph.placeholder("x")
    handle = graph.call_function(torch.ops.profiler._record_function_enter, ("part",))
    y = graph.call_function(torch.relu, (x,))
    graph.call_function(torch.ops.profiler._record_function_exit, (handle,))
    graph.output(y)
    graph.eliminate_dead_code()
    module = fx.GraphModule(nn.Module(), graph)
    assert "torch.ops.profiler._record_function_enter('part')" in module.code
    with torch.autograd.profiler.profile() as profile:
        module(torch.ones(2))
    assert {"part", "aten::relu"} <= {event.key for event in profile.key_averages()}


def test_generated_source_goes_with_its_module():
    import gc
    import linecache

    def names():
        return {key for key in linecache.cache if key.startswith("<eval_with_key>")}

    before = names()  # modules of other tests may end meanwhile
    traced = torch.fx.symbolic_trace(lambda x: x + 1)
    traced.recompile()
    key = traced.forward.__func__.__code__.co_filename
    assert names() - before == {key}
    assert "return add" in "".join(linecache.getlines(key))
    del traced
    gc.collect()
    assert names() <= before and not linecache.getlines(key)
