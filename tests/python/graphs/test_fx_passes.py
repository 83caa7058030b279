"""Rewriting, splitting, fusing, shapes: what passes do, compared with PyTorch where texts matter."""

import importlib

import pytest

import rushlight
from rushlight import fx, nn

torch = pytest.importorskip("torch")


def both(name):
    """The module of that name below torch, ours and PyTorch's."""
    return [importlib.import_module(f"{t}.{name}") for t in ("rushlight", "torch")]


def trace_both(make):
    return [t.fx.symbolic_trace(make(t)) for t in (rushlight, torch)]


def model(t):
    class Model(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = t.nn.Linear(2, 2), t.nn.Linear(2, 2)
            self.w = t.nn.Parameter(t.ones(2))
            self.register_buffer("c", t.ones(2))

        def forward(self, x, y=None):
            z = self.a(x) + self.w
            q = t.relu(z) * self.c
            return self.b(q) + z, q

    return Model()


# --- rewriting --------------------------------------------------------------------------------------


def rewritten(t):
    """Code and matches after two rewritings."""

    def program(x, w):
        return t.cat([x, w]).sum() + t.cat([x, w]).max() + t.cat([w, x]).sum()

    def nested(x):
        return t.relu(t.relu(t.relu(t.relu(t.relu(x)))))

    first, second = t.fx.symbolic_trace(program), t.fx.symbolic_trace(nested)
    found = t.fx.replace_pattern(first, lambda a, b: t.cat([a, b]).sum(), lambda a, b: a.sum() + b.sum())
    t.fx.replace_pattern(second, lambda a: t.relu(t.relu(a)), lambda a: t.neg(a))
    maps = [(m.anchor.name, sorted((k.name, v.name) for k, v in m.nodes_map.items())) for m in found]
    return first.code, second.code, maps


def test_patterns_are_replaced_like_pytorchs():
    assert rewritten(rushlight) == rewritten(torch)


def test_replaced_modules_compute_the_same():
    module = fx.symbolic_trace(lambda x: rushlight.sigmoid(x * 2) + rushlight.sigmoid(x * 3))
    found = fx.replace_pattern(
        module, lambda x, s: rushlight.sigmoid(x * s), lambda x, s: 1 / (1 + rushlight.exp(-(x * s)))
    )
    assert len(found) == 2 and "sigmoid" not in module.code
    x = rushlight.randn(5)
    rushlight.testing.assert_close(module(x), rushlight.sigmoid(x * 2) + rushlight.sigmoid(x * 3))


def test_what_others_use_is_no_match():
    def program(x):
        y = x.neg()
        return y.relu() + y

    module = fx.symbolic_trace(program)
    assert not fx.replace_pattern(module, lambda x: x.neg().relu(), lambda x: x)


def test_filters_and_literals():
    from rushlight.fx.subgraph_rewriter import replace_pattern_with_filters

    def traced():
        return fx.symbolic_trace(lambda x: (x + 1).relu() + (x + 2).relu())

    def pattern(x):
        return (x + 1).relu()

    assert len(replace_pattern_with_filters(traced(), pattern, lambda x: x.neg())) == 1
    assert len(replace_pattern_with_filters(traced(), pattern, lambda x: x.neg(), ignore_literals=True)) == 2
    never = [lambda match, graph, pattern: False]
    assert not replace_pattern_with_filters(traced(), pattern, lambda x: x.neg(), never)
    module = traced()
    made = replace_pattern_with_filters(
        module, pattern, replacement_callback=lambda match, g, p: fx.symbolic_trace(lambda x: x.abs()).graph
    )
    assert [n.target for n in made[0].replacements] == ["abs"]


def test_matching_modules_and_attributes():
    class Layer(nn.Module):
        def __init__(self, value):
            super().__init__()
            self.lin, self.c = nn.Linear(2, 2), nn.Parameter(rushlight.full((2,), value))

        def forward(self, x):
            return self.lin(x) + self.c

    matcher = importlib.import_module("rushlight.fx.passes.utils.matcher_utils").SubgraphMatcher
    module = fx.symbolic_trace(Layer(1.0))
    for value in (1.0, 2.0):  # a pattern's weights stand for any
        assert len(matcher(fx.symbolic_trace(Layer(value)).graph).match(module.graph)) == 1
    with pytest.raises(ValueError, match="cannot be initialized with an empty pattern"):
        matcher(fx.Graph())


# --- splitting and fusing -----------------------------------------------------------------------------


def in_threes():
    count = 0

    def callback(node):
        nonlocal count
        count += 1
        return count // 3

    return callback


@pytest.mark.parametrize("keep_names", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_parts_name_nodes_and_modules_as_pytorchs_do(nested, keep_names):
    texts = []
    for t, passes in zip((rushlight, torch), both("fx.passes.split_module")):
        whole = t.nn.Sequential(t.nn.Sequential(t.nn.Linear(2, 2), t.nn.ReLU()), t.nn.Linear(2, 2))
        whole = t.nn.Sequential(whole, t.nn.Tanh()) if nested else whole
        traced = t.fx.symbolic_trace(whole)
        list(traced.graph.nodes)[2].name = "rectified"
        names = {}
        made = passes.split_module(traced, whole, in_threes(), names, keep_original_node_name=keep_names)
        texts.append([made.code, names, list(made.state_dict()), *(c.code for c in made.children())])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("keep", [False, True])
def test_splitting_reads_like_pytorchs(keep):
    texts = []
    for t, passes in zip((rushlight, torch), both("fx.passes.split_module")):
        whole = model(t)
        names = {}
        made = passes.split_module(
            t.fx.symbolic_trace(whole), whole, in_threes(), names, keep_original_order=keep
        )
        texts.append([made.code, names, *((n, c.code) for n, c in made.named_children())])
        x = t.randn(3, 2)
        t.testing.assert_close(made(x), whole(x))
    assert texts[0] == texts[1]


def test_parts_that_need_each_other_are_refused():
    from rushlight.fx.passes.split_module import split_module

    whole = model(rushlight)
    with pytest.raises(RuntimeError, match="cycle exists between partitions!"):
        split_module(fx.symbolic_trace(whole), whole, lambda node: node.name == "relu")


def test_batch_norms_are_fused():
    from rushlight.fx.experimental.optimization import fuse, optimize_for_inference

    whole = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(), nn.Linear(4, 4))
    for _ in range(3):
        whole(rushlight.randn(4, 1, 6, 6) * 3 + 1)
    whole.eval()
    x = rushlight.randn(2, 1, 6, 6)
    fused = fuse(whole)
    assert "_1" not in [n.name for n in fused.graph.nodes]
    rushlight.testing.assert_close(fused(x), whole(x))
    best = optimize_for_inference(whole)
    assert [n.target for n in best.graph.nodes if n.op == "call_module"] == ["0", "2", "4"]
    rushlight.testing.assert_close(best(x), whole(x))


# --- facts --------------------------------------------------------------------------------------------


def test_shapes_of_all_values():
    facts = []
    for t, shape_prop in zip((rushlight, torch), both("fx.passes.shape_prop")):
        module = t.fx.symbolic_trace(model(t))
        shape_prop.ShapeProp(module).propagate(t.ones(3, 2))
        facts.append(
            [
                (n.name, tuple(m.shape), str(m.dtype), m.requires_grad, tuple(m.stride), str(m.memory_format))
                for n in module.graph.nodes
                if isinstance(m := n.meta.get("tensor_meta"), shape_prop.TensorMetadata)
            ]
        )
    assert facts[0] == facts[1] and len(facts[0]) >= 8
    text = module.print_readable(print_output=False)
    assert ': "f32[3, 2]"' in text


def test_fake_values_of_all_nodes():
    from rushlight.fx.passes.fake_tensor_prop import FakeTensorProp

    module = fx.symbolic_trace(model(rushlight))
    out, _ = FakeTensorProp(module).propagate(rushlight.ones(3, 2))
    assert type(out).__name__ == "FakeTensor" and out.shape == (3, 2)
    assert {n.meta["val"].shape for n in module.graph.nodes if n.op == "call_module"} == {(3, 2)}


def test_calls_are_normalised():
    for t, schemas in zip((rushlight, torch), both("fx.operator_schemas")):
        normalize = schemas.normalize_function
        assert normalize(t.transpose, (1, 0, 1)) == ((1, 0, 1), {})
        by_name = normalize(t.transpose, (1, 0), {"dim1": 1}, normalize_to_only_use_kwargs=True)
        assert by_name == ((), {"input": 1, "dim0": 0, "dim1": 1})
        assert normalize(t.nn.functional.relu, (1,), {"inplace": True}).kwargs == {"inplace": True}
        assert normalize(t.relu, (1, 2, 3)) is None
        module = t.fx.symbolic_trace(t.nn.Sequential(t.nn.Linear(1, 1)))
        call = module.graph.find_nodes(op="call_module")[0]
        found = call.normalized_arguments(module, normalize_to_only_use_kwargs=True)
        assert list(found.kwargs) == ["input"]
        assert str(schemas.get_signature_for_torch_op(t.transpose)[0]).startswith("(input: ")


def test_passes_run_in_order():
    from rushlight.fx.passes.infra import pass_manager
    from rushlight.fx.passes.infra.pass_base import PassBase, PassResult

    ran = []

    class Removing(PassBase):
        def call(self, gm):
            ran.append("remove")
            nodes = [n for n in gm.graph.nodes if n.target == "relu"]
            for node in nodes[:1]:
                node.replace_all_uses_with(node.args[0])
                gm.graph.erase_node(node)
            return PassResult(gm, bool(nodes))

    def look(gm):
        ran.append("look")
        return PassResult(gm, False)

    removing = Removing()
    manager = pass_manager.PassManager([removing, look], steps=5)
    manager.add_constraint(pass_manager.this_before_that_pass_constraint(look, removing))
    module = fx.symbolic_trace(lambda x: x.relu().relu())
    result = manager(module)
    assert result.modified and ran == ["look", "remove"] * 3 and "relu" not in module.code
    manager.add_constraint(pass_manager.this_before_that_pass_constraint(removing, look))
    with pytest.raises(RuntimeError, match="Circular dependency"):
        manager.solve_constraints()


def test_pictures():
    pytest.importorskip("pydot")
    from rushlight.fx.passes.graph_drawer import FxGraphDrawer

    text = FxGraphDrawer(fx.symbolic_trace(model(rushlight)), "net").get_dot_graph().to_string()
    assert "op_code=call_module" in text and "relu -> mul" in text.replace('"', "")


def test_sizes_are_numbers():
    shapes = importlib.import_module("rushlight.fx.experimental.symbolic_shapes")
    assert shapes.guard_or_false(2 == 2) and not shapes.guard_or_true(2 == 3)
    assert shapes.free_symbols(rushlight.ones(2)) == set() and not shapes.has_free_symbols(3)
    assert shapes.create_contiguous([2, 3, 4]) == [12, 4, 1] and shapes.sym_eq([1, [2]], [1, [2]])


def test_equal_calls_share_a_result():
    from rushlight.fx.experimental.proxy_tensor import make_fx
    from rushlight.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops

    def program(x):
        a, b = x.sin() + 1, x.sin() + 1
        c = x.sin() + 1.5
        before = x.cos()
        y = x.clone().add_(1)
        return a * b, c, before + x.cos(), y, rushlight.rand_like(x) - rushlight.rand_like(x)

    x = rushlight.rand(3)
    traced = make_fx(program)(x)
    module, modified = CSEPass()(traced)
    names = [str(n.target) for n in module.graph.nodes if n.op == "call_function"]
    assert modified and sum("sin" in n for n in names) == 1 and sum("rand_like" in n for n in names) == 2
    assert sum("cos" in n for n in names) == 2  # a write stands between them
    rushlight.manual_seed(0)
    expected = traced(x)
    rushlight.manual_seed(0)
    assert all(rushlight.equal(a, b) for a, b in zip(module(x), expected, strict=True))
    assert not CSEPass()(module).modified
    kept = CSEPass(banned_ops=[rushlight.ops.aten.sin])(traced).graph_module
    assert sum("sin" in str(n.target) for n in kept.graph.nodes) == 3

    def written(x):
        y, z = x + 1, x + 1
        y[:1].add_(1)
        return z, y, x + 1

    assert not CSEPass()(make_fx(written)(x)).modified
    banned = get_CSE_banned_ops()
    assert {
        rushlight.ops.aten.rand,
        rushlight.ops.aten.add_,
    } <= banned and rushlight.ops.aten.sin not in banned
