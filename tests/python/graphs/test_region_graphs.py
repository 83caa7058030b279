"""`cond` and `map` in graphs: nodes whose functions are graphs of their own."""

import pytest

import rushlight as torch
from rushlight._higher_order_ops import cond, while_loop
from rushlight._higher_order_ops import map as hop_map
from rushlight.export import Dim, UnsupportedError, export, load, load_file, save, unflatten
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.testing import assert_close
from rushlight.utils import _pytree as pytree

truths = pytest.mark.parametrize("truth", [True, False])
modes = pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])


def nodes_of(graph, name):
    return [n for n in graph.nodes if n.target is getattr(torch.ops.higher_order, name)]


def alike(one, other):
    for a, b in zip(pytree.tree_leaves(one), pytree.tree_leaves(other), strict=True):
        assert_close(a, b)


def chosen(p, x, w):
    return cond(p, lambda x: {"y": x.clone().mul_(w)}, lambda x: {"y": x.cos() + 1}, (x,))["y"]


def mapped(p, x, w):
    return hop_map(lambda row, w: (row * w + x.sum(), row.sum()), x, w)


@modes
@pytest.mark.parametrize("change", [lambda f: f, torch.func.functionalize])
@pytest.mark.parametrize("program, name", [(chosen, "cond"), (mapped, "map_impl")])
def test_a_trace_keeps_the_operator(program, name, change, mode):
    given = torch.tensor(True), torch.randn(3, 2), torch.randn(2)
    traced = make_fx(change(program), tracing_mode=mode)(*given)
    assert len(nodes_of(traced.graph, name)) == 1
    length = 5 if mode == "symbolic" else 3
    for truth in (True, False):
        given = torch.tensor(truth), torch.randn(length, 2), torch.randn(2)
        alike(traced(*given), program(*given))


@modes
def test_gradients_are_operators_again(mode):
    def program(p, x, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = cond(p, lambda x: (x * w).sin(), lambda x: x.exp(), (x,))
        z = hop_map(lambda row, v: (row * v).sum() * w.sum(), x, x)
        first = torch.autograd.grad(y.sum() + z.sum(), (x, w), create_graph=True)
        return *first, torch.autograd.grad(first[0].sum(), x)[0]

    traced = make_fx(program, tracing_mode=mode)(torch.tensor(True), torch.randn(3), torch.randn(3))
    assert len(nodes_of(traced.graph, "cond")) == 3
    for truth in (True, False):
        given = torch.tensor(truth), torch.randn(3), torch.randn(3)
        alike(traced(*given), program(*given))


def test_a_loop_in_a_trace_has_no_gradient_and_says_so():
    def program(x):
        x = x.detach().requires_grad_()
        (y,) = while_loop(lambda x: x.sum() < 9, lambda x: (x + 1,), (x,))
        return torch.autograd.grad(y.sum() + x.sum(), x)

    with pytest.raises(NotImplementedError, match="while_loop has no gradient in a graph: detach .*scan"):
        make_fx(program)(torch.ones(2))


def test_an_operand_that_a_function_returns_stays_the_operand():
    def program(p, x):
        y = cond(p, lambda x: x, lambda x: x + 1, (x,))
        return y * 2, x * 3

    traced = make_fx(program)(torch.tensor(True), torch.ones(2))
    x = torch.randn(2)
    alike(traced(torch.tensor(False), x), ((x + 1) * 2, x * 3))


@pytest.mark.parametrize("operator", ["cond", "map", "while_loop"])
def test_writes_to_what_is_given_are_refused_where_writes_become_values(operator):
    def program(p, x):
        x = x.clone()
        if operator == "cond":
            y = cond(p, lambda x: x.add_(1) * 2, lambda x: x * 3, (x,))
        elif operator == "map":
            y = hop_map(lambda row: row.add_(1) * 2, x)
        else:
            (y,) = while_loop(lambda x: x.sum() < 9, lambda x: (x.add_(1) * 2,), (x,))
        return y, x

    with pytest.raises(RuntimeError, match=r"writes to what it is given"):
        make_fx(torch.func.functionalize(program))(torch.tensor(True), torch.ones(2, 2))


class Program(torch.nn.Module):
    """Choices within choices, sizes, parameters of two modules, and a map."""

    def __init__(self):
        super().__init__()
        self.layer, self.inner = torch.nn.Linear(4, 4), Inner()

    def forward(self, p, q, x):
        def nested(x):
            return cond(q, lambda x: x.cos(), lambda x: x + x.shape[0] * 2, (x,))

        y = cond(p, lambda x: self.layer(x) * x.size(0), nested, (x,))
        return self.inner(p, y), hop_map(lambda row, y: row * y.sum() + x.size(0), x[:2], y)


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((4,), 2.0))

    def forward(self, p, y):
        return cond(p, lambda y: y * self.scale, lambda y: y - 1, (y,))


def exported(decomposed):
    given = torch.tensor(True), torch.tensor([True]), torch.randn(5, 4)
    made = export(Program(), given, dynamic_shapes=(None, None, {0: Dim("n", min=3)}))
    return made.run_decompositions() if decomposed else made


def inputs(truth, other, length):
    return torch.tensor(truth), torch.tensor([other]), torch.randn(length, 4)


@pytest.mark.parametrize("decomposed", [False, True])
def test_an_export_chooses_at_any_size(decomposed, tmp_path):
    program = exported(decomposed)
    program.validate()
    assert len(nodes_of(program.graph, "cond")) == 2
    save(program, tmp_path / "program.rl")
    save(program, tmp_path / "program.pt2")
    runs = {
        "module": program.module(),
        "unflattened": unflatten(program),
        "one file": load_file(tmp_path / "program.rl"),
        "archive": load(tmp_path / "program.pt2").module(),
    }
    model = Program()
    model.load_state_dict(program.state_dict)
    for truth, other, length in ((True, True, 5), (False, True, 3), (False, False, 8)):
        given = inputs(truth, other, length)
        for run in runs.values():
            alike(list(run(*given)), list(model(*given)))


@truths
def test_gradients_of_an_export_are_those_of_the_branch(truth):
    program = exported(True)
    model = Program()
    model.load_state_dict(program.state_dict)
    module, given = program.module(), inputs(truth, True, 4)
    given[2].requires_grad_()
    module(*given)[0].sum().backward()
    model(*given)[0].sum().backward()
    for name, parameter in model.named_parameters():
        found = dict(module.named_parameters())[name].grad
        if parameter.grad is None:
            assert found is None
        else:
            assert_close(found, parameter.grad)


class Loops(torch.nn.Module):
    def forward(self, p, x):
        y = cond(p, lambda x: (x.sin(), x), lambda x: (x * 2, x + 1), (x,))
        z = hop_map(lambda row, v: (row * v.sum(), row + 1), x, y[0])
        return y, z, while_loop(lambda x: x.sum() < 10, lambda x: (x.exp(),), (x,))


def test_archives_hold_the_functions(tmp_path):
    program = export(Loops(), (torch.tensor(True), torch.randn(5, 4)), dynamic_shapes=(None, {0: Dim("n")}))
    save(program, tmp_path / "program.pt2")
    read = load(tmp_path / "program.pt2")
    for run in (read.module(), read.run_decompositions().module()):
        for truth in (True, False):
            given = torch.tensor(truth), torch.randn(3, 4)
            alike(run(*given), Loops()(*given))
    assert nodes_of(read.graph, "while_loop")
    if torch.__name__ == "torch":  # under the alias
        return
    pytorch = pytest.importorskip("torch")
    theirs = pytorch.export.load(tmp_path / "program.pt2").module()
    x = torch.randn(3, 4)
    for truth in (True, False):
        found = pytree.tree_leaves(theirs(pytorch.tensor(truth), pytorch.tensor(x.tolist())))
        for a, b in zip(found, pytree.tree_leaves(Loops()(torch.tensor(truth), x)), strict=True):
            assert_close(torch.tensor(a.tolist()), b)


def test_one_file_says_what_it_cannot_hold(tmp_path):
    class Writes(torch.nn.Module):
        def forward(self, p, x):
            return cond(p, lambda x: x.clone().add_(1), lambda x: x * 2, (x,))

    program = export(Writes(), (torch.tensor(True), torch.ones(2)))
    with pytest.raises(UnsupportedError, match="write to nothing"):
        save(program, tmp_path / "writes.rl")
    save(program.run_decompositions(), tmp_path / "pure.rl")
    assert load_file(tmp_path / "pure.rl")(torch.tensor(False), torch.ones(2)).tolist() == [2.0, 2.0]


def test_branches_give_equal_kinds():
    with pytest.raises(RuntimeError, match="equal shapes and dtypes"):
        make_fx(lambda p, x: cond(p, lambda x: x, lambda x: x.sum(), (x,)))(torch.tensor(True), torch.ones(2))
    with pytest.raises(RuntimeError, match="equal numbers and other values"):
        make_fx(lambda p, x: cond(p, lambda x: (x, 1), lambda x: (x, 2), (x,)))(
            torch.tensor(True), torch.ones(2)
        )


@truths
def test_under_a_transform_a_trace_computes_both(truth):
    def program(p, x):
        return torch.func.vmap(lambda x: cond(p, lambda x: x.sin(), lambda x: x.cos(), (x,)))(x)

    traced = make_fx(program)(torch.tensor(True), torch.ones(3))
    given = torch.tensor(truth), torch.randn(3)
    alike(traced(*given), program(*given))


def test_rows_of_nested_values_and_back():
    from rushlight._higher_order_ops.map import _stack_pytree, _unstack_pytree

    xs = {"a": torch.randn(3, 2), "b": [torch.randn(3)]}
    rows = _unstack_pytree(xs)
    assert len(rows) == 3 and torch.equal(rows[1]["b"][0], xs["b"][0][1])
    alike(_stack_pytree(rows), xs)


def test_what_map_goes_over_are_tensors():
    with pytest.raises(RuntimeError, match=r"Mapped xs can only consist of tensors\. Got xs \[3, tensor"):
        hop_map(lambda x: x[1], [3, torch.ones(2)])
    with pytest.raises(RuntimeError, match=r"Leading dimensions of mapped xs cannot be 0\."):
        hop_map(lambda x: x, torch.ones(0, 2))
    with pytest.raises(
        RuntimeError, match=r"must be consistent\. Got shapes \[torch.Size\(\[3, 4\]\), torch"
    ):
        hop_map(lambda x: x[0], [torch.ones(3, 4), torch.ones(2, 4)])
