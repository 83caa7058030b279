"""Ahead-of-time autograd beside eager mode: what programs do to their arguments and return of them."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._functorch import config
from rushlight._functorch.aot_autograd import aot_function, aot_module_simplified
from rushlight._functorch.compilers import nop

aten = torch.ops.aten
quiet = torch.no_grad


class Graphs:
    """A compiler that keeps what it gets."""

    def __init__(self):
        self.modules = []

    def __call__(self, module, inputs):
        module.graph.lint()
        self.modules.append(module)
        return module

    def targets(self, i=0):
        return [n.target for n in self.modules[i].graph.nodes if n.op == "call_function"]

    def output(self, i=0):
        return self.modules[i].graph.output_node().args[0]


def outcome(function, make, wanted):
    """Results, what became of the arguments, and gradients."""
    root = torch.arange(1.0, 13).view(3, 4).requires_grad_(wanted)
    given = make(root * 1)
    results = function(*given)
    results = results if isinstance(results, tuple) else (results,)
    found = [*results, *given]
    if wanted:
        total = sum(t.sin().sum() for t in found if t.requires_grad)
        found += torch.autograd.grad(total, root)
    return found, [next((i for i, g in enumerate(given) if r is g), None) for r in results]


def add(x, y):
    x.add_(1)
    return x * y


def both(x, y):
    x.mul_(2)
    y[0].add_(3)
    return y, x + 1


def turn(x, y):
    x.t_()
    y.mul_(2)
    return x.sum(), y.t()


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize(
    ("program", "make", "inputs"),
    [
        (add, lambda x: (x, x), 1),
        (add, lambda x: (x[0], x[0]), 1),
        (add, lambda x: (x[0], x), 1),
        (add, lambda x: (x[:2], x[1:]), 1),
        (both, lambda x: (x.view(4, 3), x), 1),
        (both, lambda x: (x.t(), x[1:].t()), 1),
        (turn, lambda x: (x, x), 1),
        (turn, lambda x: (x, x.view(4, 3)), 1),
        (lambda x, y: (x.t_(), y + 1)[1], lambda x: (x, x.view(4, 3)), 2),
    ],
)
def test_arguments_that_share_memory(program, make, inputs, wanted):
    """The graph takes one tensor for them, and everything is as in eager mode."""
    graphs = Graphs()
    found, same = outcome(aot_function(program, graphs, nop), make, wanted)
    expected, same_expected = outcome(program, make, wanted)
    torch.testing.assert_close(found, expected)
    assert same == same_expected
    placeholders = [n for n in graphs.modules[0].graph.nodes if n.op == "placeholder"]
    assert len(graphs.modules) == 1 and len(placeholders) == inputs


def test_strided_views_stay_in_graphs():
    graphs = Graphs()
    aot_function(add, graphs)(*(lambda x: (x[0], x[1:]))(torch.ones(3, 4)))
    assert graphs.targets().count(aten.as_strided_scatter.default) == 1
    assert aten.index_put.default not in graphs.targets()
    overlapping = torch.ones(6).as_strided((3, 3), (1, 1))

    def first(x):
        x[0].add_(1)
        return x * 2

    torch.testing.assert_close(aot_function(first, nop)(overlapping.clone()), first(overlapping.clone()))


def test_graphs_that_write_to_arguments():
    def counts(x, count):
        count.add_(1)
        return x * count, count

    for keep in (False, True):
        graphs, x, count = Graphs(), torch.ones(3, requires_grad=True), torch.zeros(3)
        compiled = aot_function(counts, graphs, nop, keep_inference_input_mutations=keep)
        for n in range(1, 3):
            result, same = compiled(x, count)
            assert same is count and count[0] == n and count._version == n and bool((result == n).all())
        assert (aten.copy_.default in graphs.targets()) is keep
        # what the backward pass needs is kept beside
        assert torch.autograd.grad(result.sum(), x)[0].tolist() == [2.0] * 3

    def visible(x, y):
        return x.add_(y)

    graphs, x, y = Graphs(), torch.ones(3), torch.ones(3, requires_grad=True)
    result = aot_function(visible, graphs, keep_inference_input_mutations=True)(x, y)
    assert aten.copy_.default not in graphs.targets() and x.requires_grad and result is x
    result.sum().backward()
    assert y.grad.tolist() == [1.0] * 3 and graphs.output(1)[0] is None


def test_results_of_graphs_are_all_that_is_returned():
    def program(x):
        y = x * 2
        return x.view(-1), y[0], y

    graphs, x = Graphs(), torch.ones(2, 2)
    views = aot_function(program, graphs)(x)
    assert [n.target for n in graphs.output()] == [aten.view.default, aten.select.int, aten.mul.Tensor]
    assert views[0].data_ptr() == x.data_ptr() and views[1].data_ptr() == views[2].data_ptr()

    def parts(x):
        return (x * 2).unbind(0)

    graphs, x = Graphs(), torch.ones(2, 3, requires_grad=True)
    found = aot_function(parts, graphs, nop)(x)
    assert len(graphs.output()) == 2 and all("Compiled" in t.grad_fn.name() for t in found)
    (found[0] * 2 + found[1]).sum().backward()
    assert x.grad.tolist() == [[4.0] * 3, [2.0] * 3]


def test_views_are_made_by_their_operators():
    """Results that share an argument's memory, or each other's, have the history of eager mode."""

    def of_argument(x):
        return x.view(-1), x.t()[1:], x.unbind(0)[1]

    def of_result(x):
        y = x * 2
        return (*of_argument(y), y)

    for program in (of_argument, of_result):
        x = torch.randn(3, 4, requires_grad=True)
        found, expected = aot_function(program, nop)(x), program(x)
        names = [[t.grad_fn.name() for t in results[:3]] for results in (found, expected)]
        assert names[0] == names[1] and names[0][0] == "ViewBackward0"
        torch.testing.assert_close(found, expected)
        grads = [torch.autograd.grad(sum(t.sin().sum() for t in results), x) for results in (found, expected)]
        torch.testing.assert_close(*grads)
    # all but one are views of several, which nobody may write to
    found = aot_function(lambda x: (y := x * 2, *y.unbind(0)), nop)(x)
    assert all("Compiled" in t.grad_fn.name() for t in found)


def test_functions_with_gradients_of_their_own():
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 0.5

    x = torch.ones(2, 2, requires_grad=True)
    for program in (Half.apply, lambda x: Half.apply(x).view(-1)):
        result = aot_function(program, nop)(x)
        assert torch.autograd.grad(result.sum(), x)[0].tolist() == [[0.5, 0.5]] * 2

    def inner(x):
        return torch.autograd.grad(x.exp().sum(), x)

    torch.testing.assert_close(aot_function(inner, nop)(x), inner(x))


def test_sparse_gradients_beside():
    bag = nn.EmbeddingBag(10, 3, sparse=True)
    compiled = aot_function(lambda w, i: nn.functional.embedding_bag(i, w, torch.tensor([0])), nop)
    index = torch.arange(3)
    bag(index, torch.tensor([0])).sum().backward()
    assert bag.weight.grad.is_sparse
    torch.testing.assert_close(compiled(bag.weight, index), bag(index, torch.tensor([0])))


def test_arguments_that_are_not_as_compiled(monkeypatch):
    class Turn(nn.Module):
        def forward(self, x, y):
            x.unsqueeze_(0)
            y.unsqueeze_(0)
            return (x + y,)

    def tensors():
        return torch.randn(3, requires_grad=True) * 1, torch.randn(3, requires_grad=True) * 1

    x, _ = tensors()
    run = aot_module_simplified(Turn(), (x, x), nop)
    x, _ = tensors()
    assert run(x, x)[0].shape == (1, 1, 3)
    with pytest.raises(AssertionError, match="input 1 would be a duplicate of input 0"):
        run(*tensors())
    monkeypatch.setattr(config, "debug_assert", True)
    x, y = tensors()
    run = aot_function(lambda x, y: x * y, nop)
    run(x.detach(), y)
    plain = aot_module_simplified(nn.Linear(3, 2), (x.detach(),), nop)
    plain(y.detach())
    with pytest.raises(AssertionError, match="input 2 would not require grad"):
        plain(y)


def scales(x, y):
    x.mul_(2)
    return x + y


def cuts(x, y):
    z = nn.functional.relu(x, inplace=True)
    return z * y, z.sum()


def sets(x, y):
    x[0] = 1
    return (x.exp() * y).softmax(-1)


def shares(x, y):
    w = x * 2
    x.add_(y)
    return w * x


@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "eager"])
@pytest.mark.parametrize("program", [scales, cuts, sets, shares])
def test_compiled_writes_to_results_of_others(program, backend):
    """A compiled function may write to an argument that was computed, as eager mode lets it."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    compiled = torch.compile(program, backend=backend, fullgraph=True)
    for _ in range(3):
        root, y = torch.randn(4, 3), torch.randn(4, 3)
        found = []
        for function in (compiled, program):
            x = root.clone().requires_grad_()
            given = x * 1
            results = function(given, y)
            results = results if isinstance(results, tuple) else (results,)
            total = sum(t.sin().sum() for t in (*results, given))
            found.append([*results, given, torch.autograd.grad(total, x)[0]])
        torch.testing.assert_close(*found)
    leaf = torch.ones(4, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        compiled(leaf, torch.ones(4, 3))


def test_fakes_of_results_are_no_leaves():
    from rushlight._subclasses.fake_tensor import FakeTensorMode

    mode, root = FakeTensorMode(), torch.ones(3, requires_grad=True)
    for real in (root, root * 2, torch.ones(3)):
        fake = mode.from_tensor(real)
        assert (fake.is_leaf, fake.requires_grad) == (real.is_leaf, real.requires_grad)
        assert mode.from_tensor(real) is fake and fake.stride() == real.stride()
    fake = mode.from_tensor(root * 2)
    assert torch.autograd.grad(fake.mul_(2).sum(), fake)[0].shape == (3,)


def weighs(x, y):
    h = x * y
    with torch.no_grad():
        s = h.sum()
    return h / s


def keeps(x, y):
    with torch.no_grad():
        t = x.view(-1).exp()
    return (x * y).view(-1) * t, t


def mixes(x, y):
    with torch.no_grad():
        z = x.sin()
        with torch.enable_grad():
            w = x.cos()
    return w * z * y


def counts_up(x, y):
    with torch.no_grad():
        y.add_(x)
    return x * y


def scores(x, y):
    with torch.set_grad_enabled(False):
        target = nn.functional.linear(x, y).softmax(-1)
    return nn.functional.cross_entropy(x @ y.t(), target)


@torch.no_grad()
def spread(x):
    return x.mean(0), x.var(0)


def decorated(x, y):
    mean, variance = spread(x)
    return (x - mean) / (variance + 1e-5).sqrt() * y


def renamed(x, y):
    with quiet():
        t = x.exp()
    return t * x, t * y


@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "eager"])
@pytest.mark.parametrize("program", [weighs, keeps, mixes, counts_up, scores, decorated, renamed])
def test_parts_without_gradients(program, backend):
    """What a compiled function does under `no_grad` has no gradient, and the rest has."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    compiled = torch.compile(program, backend=backend, fullgraph=True)
    for _ in range(3):
        root, other = torch.randn(4, 3), torch.randn(4, 3)
        found = []
        for function in (compiled, program):
            x, y = root.clone().requires_grad_(), other.clone()
            results = function(x * 1, y)
            results = results if isinstance(results, tuple) else (results,)
            total = sum(t.sin().sum() for t in results if t.requires_grad)
            wanted = torch.tensor([t.requires_grad for t in results])
            found.append([*results, y, wanted, torch.autograd.grad(total, x)[0]])
        torch.testing.assert_close(*found)


def test_writes_without_gradients_are_no_graph():
    def program(x):
        with torch.no_grad():
            x.mul_(2)
        return x * 3

    leaf = torch.ones(3, requires_grad=True)
    torch.compile(program)(leaf).sum().backward()
    assert leaf.tolist() == [2.0] * 3 and leaf.grad.tolist() == [3.0] * 3
    with pytest.raises(torch._dynamo.exc.Unsupported, match="writes to a tensor with a gradient"):
        torch.compile(program, fullgraph=True)(leaf)
