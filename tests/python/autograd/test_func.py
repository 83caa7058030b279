"""torch.func: the transforms, their compositions to depth three, and PyTorch's documented uses of them."""

import math

import pytest

import rushlight as torch
from rushlight.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

close = torch.testing.assert_close


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def x():
    return torch.randn(3, dtype=torch.float64)


def cube(a):
    return (a**3).sum()


def test_gradients_of_gradients(x):
    close(grad(cube)(x), 3 * x**2)
    close(grad(lambda a: grad(cube)(a).sum())(x), 6 * x)
    close(grad(lambda a: grad(lambda b: grad(cube)(b).sum())(a).sum())(x), torch.full_like(x, 6))
    close(vmap(grad(grad(grad(torch.sin))))(x), -x.cos())
    gradient, value = grad_and_value(cube)(x)
    close(value, cube(x))
    close(gradient, 3 * x**2)


DERIVATIVES = {"reverse": jacrev, "forward": jacfwd}


@pytest.mark.parametrize("first", DERIVATIVES)
@pytest.mark.parametrize("second", DERIVATIVES)
@pytest.mark.parametrize("third", DERIVATIVES)
def test_jacobians_compose_to_depth_three(first, second, third, x):
    one, two, three = DERIVATIVES[first], DERIVATIVES[second], DERIVATIVES[third]
    close(one(torch.sin)(x), torch.diag(x.cos()))
    close(two(one(cube))(x), torch.diag(6 * x))
    expected = torch.zeros(3, 3, 3, dtype=x.dtype)
    expected[range(3), range(3), range(3)] = 6
    close(three(two(one(cube)))(x), expected)


def test_derivatives_of_mapped_derivatives(x):
    close(grad(lambda a: vmap(grad(torch.sin))(a).sum())(x), -x.sin())
    close(vmap(jacrev(grad(cube)))(x.expand(2, 3)), torch.diag(6 * x).expand(2, 3, 3))
    close(vmap(hessian(cube))(x.expand(2, 3)), torch.diag(6 * x).expand(2, 3, 3))
    close(jvp(lambda a: vmap(torch.sin)(a), (x,), (torch.ones_like(x),))[1], x.cos())
    close(vmap(lambda a: jvp(torch.sin, (a,), (torch.ones_like(a),))[1])(x), x.cos())


def test_perturbations_are_not_confused(x):
    def outer(a):
        return grad(lambda b: (a * b).sum())(torch.ones_like(a)).mul(a).sum()

    close(grad(outer)(x), 2 * x)

    def forward(a):
        return a * jvp(lambda b: a + b, (torch.ones_like(a),), (torch.ones_like(a),))[1]

    close(jvp(forward, (x,), (torch.ones_like(x),))[1], torch.ones_like(x))


def test_no_grad_inside_and_outside(x):
    def f(a):
        with torch.no_grad():
            shift = a**2
        return (a - shift).sum()

    close(grad(f)(x), torch.ones_like(x))
    with torch.no_grad():
        close(grad(cube)(x), 3 * x**2)
        assert not grad(cube)(x.requires_grad_()).requires_grad

    def nested(a):
        def inner(b):
            with torch.no_grad():
                c = b * a
            return (b * c).sum()

        return grad(inner)(a).sum()

    close(grad(nested)(x.detach()), torch.zeros_like(x))


def test_captured_tensors_keep_their_gradients(x):
    w = torch.randn(3, dtype=x.dtype, requires_grad=True)
    grad(lambda a: (a.sin() * w).sum())(x).sum().backward()
    close(w.grad, x.cos())
    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        grad(lambda a: x.add_(a).sum())(x)


def test_writes_in_place(x):
    def f(a):
        b = a.clone()
        b.mul_(2)
        b[0] = a[1]
        c = torch.zeros(2, dtype=a.dtype)
        c.copy_(b[1:])
        return b.sum() + c.sum()

    expected = torch.tensor([0.0, 5.0, 4.0], dtype=x.dtype)
    close(grad(f)(x), expected)
    close(vmap(grad(f))(x.expand(2, 3)), expected.expand(2, 3))
    close(jacfwd(f)(x), expected)
    with pytest.raises(RuntimeError, match="inplace arithmetic|is not possible because"):
        captured = torch.zeros(3, dtype=x.dtype)
        vmap(lambda a: captured.add_(a))(x)


def test_vjp_and_linearize(x):
    out, pull = vjp(lambda a, b: (a * b, a.sum()), x, x + 1)
    close(out, (x * (x + 1), x.sum()))
    ones = torch.ones_like(x)
    close(pull((ones, torch.ones((), dtype=x.dtype))), (x + 2, x))
    out, push = linearize(torch.sin, x)
    close(out, x.sin())
    close(push(ones), x.cos())
    with pytest.raises(RuntimeError, match="cotangents"):
        pull(ones)


def test_mapped_dimensions():
    a, b = torch.randn(2, 5, 3), torch.randn(5, 4)
    close(vmap(torch.outer, in_dims=(1, 0), out_dims=2)(a[0].T, b), torch.stack(
        [torch.outer(p, q) for p, q in zip(a[0].T.unbind(1), b)], 2))  # fmt: skip
    close(vmap(vmap(torch.dot, (None, 0)), (0, None))(b, b), b @ b.T)
    close(
        vmap(lambda d: d["a"] + d["b"], in_dims=({"a": 1, "b": None},))({"a": b, "b": b[:, 0]}), b.T + b[:, 0]
    )
    close(vmap(torch.sin, chunk_size=2)(b), b.sin())


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda v: vmap(torch.sin, in_dims=2)(v), "expected in_dim to satisfy"),
        (lambda v: vmap(torch.sin, in_dims=(0, 0))(v), "in_dims is not compatible with the structure"),
        (lambda v: vmap(torch.add)(v, torch.ones(4)), "same size in the mapped dimension"),
        (lambda v: vmap(lambda a: 3)(v), "must only return Tensors"),
        (lambda v: vmap(torch.sin)(), "got no inputs"),
        (lambda v: vmap(torch.sin, randomness="x")(v), "Only allowed values for randomness"),
    ],
)
def test_wrong_uses_of_vmap(call, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        call(torch.randn(3))


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda a: a.item(), r"calling \.item\(\)"),
        (lambda a: a if a > 0 else -a, "data-dependent control flow"),
        (torch.nonzero, "dynamic shape"),
        (lambda a: a.tolist(), "doesn't have storage"),
        (lambda a: a.numpy(), "doesn't have storage"),
        (lambda a: torch.randn(2) + a, "randomness error mode"),
        (lambda a: a.requires_grad_(), "requires_grad_"),
    ],
)
def test_what_vmap_cannot_do_raises(f, message):
    with pytest.raises(RuntimeError, match=message):
        vmap(f)(torch.randn(3))


def test_randomness():
    x = torch.zeros(4, 2)
    different = vmap(lambda a: torch.randn(2) + a, randomness="different")(x)
    assert len({tuple(row.tolist()) for row in different}) == 4
    same = vmap(lambda a: torch.randn(2) + a, randomness="same")(x)
    assert len({tuple(row.tolist()) for row in same}) == 1
    dropped = vmap(lambda a: torch.nn.functional.dropout(a + 1), randomness="different")(torch.zeros(8, 20))
    assert len({tuple(row.tolist()) for row in dropped}) == 8


# --- the examples of PyTorch's documentation


def worst(tree, rows):
    return max((tree[k] - torch.stack([r[k] for r in rows])).abs().max().item() for k in tree)


@pytest.mark.parametrize("kind", ["linear", "conv", "norm"])
def test_per_sample_gradients(kind):
    nn = torch.nn
    if kind == "linear":
        model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), torch.randn(5, 3)
    elif kind == "conv":
        layers = nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 2)
        model, x = nn.Sequential(*layers), torch.randn(5, 2, 6, 6)
    else:
        model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2))
        x = torch.randn(5, 3)
    model.double()
    x, target = x.double(), torch.randint(0, 2, (5,))
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(params, sample, label):
        output = functional_call(model, params, (sample[None],))
        return nn.functional.cross_entropy(output, label[None])

    together = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, target)
    assert worst(together, [grad(loss)(params, a, b) for a, b in zip(x, target)]) < 1e-12


def test_model_ensembling():
    models = [torch.nn.Linear(3, 2) for _ in range(4)]
    params, buffers = stack_module_state(models)
    base, x = torch.nn.Linear(3, 2), torch.randn(5, 3)
    output = vmap(lambda p, b, v: functional_call(base, (p, b), (v,)), in_dims=(0, 0, None))(
        params, buffers, x
    )
    close(output, torch.stack([m(x) for m in models]))
    output.sum().backward()
    close(params["weight"].grad[0], x.sum(0).expand(2, 3))


def test_meta_learning():
    w = torch.randn(3, dtype=torch.float64, requires_grad=True)
    xs, ys = torch.randn(6, 4, 3, dtype=torch.float64), torch.randn(6, 4, dtype=torch.float64)

    def loss(w, x, y):
        return ((x @ w - y) ** 2).mean()

    def task(x, y):
        return loss(w - 0.1 * grad(loss)(w, x, y), x, y)

    vmap(task)(xs, ys).mean().backward()
    mapped, w.grad = w.grad, None
    for x, y in zip(xs, ys):
        step = torch.autograd.grad(loss(w, x, y), w, create_graph=True)[0]
        (loss(w - 0.1 * step, x, y) / 6).backward()
    close(w.grad, mapped)


def test_what_a_functional_module_assigns_goes_to_the_caller():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.count = torch.nn.Buffer(torch.zeros(1))
            self.scale = 0.0

        def forward(self, x):
            self.count = self.count + 1
            return x + self.count

    module, state = Counting(), {"count": torch.tensor([2.0])}
    assert functional_call(module, state, (torch.zeros(1),)) == 3
    assert module.count == 0 and state["count"] == 3
    with pytest.raises(TypeError, match="attribute `scale`: 0.0 is not an instance of torch.Tensor"):
        functional_call(module, {"scale": torch.ones(1)}, (torch.zeros(1),))


def test_views_of_what_was_written_to_keep_their_history():
    """The view is the output; its base was written to, and the level has ended when it is pulled back."""

    oracle = pytest.importorskip("torch")

    def program(m):
        def f(x):
            base = x.clone()
            view = base[0]
            base.mul_(2)
            return view

        out, pull = m.func.vjp(f, m.arange(4.0).reshape(2, 2))
        return pull(m.ones_like(out))[0].tolist()

    assert program(torch) == program(oracle) == [[2, 2], [0, 0]]


def test_cells_are_pulled_back_after_their_level_has_ended():
    oracle = pytest.importorskip("torch")

    def program(m):
        given = [m.linspace(-1, 1, math.prod(s)).reshape(s) for s in ((2, 3), (2, 4), (12, 3), (12, 4))]
        out, pull = m.func.vjp(m.gru_cell, *given)
        return [g.flatten().tolist() for g in pull(m.ones_like(out))]

    for ours, theirs in zip(program(torch), program(oracle), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)


def test_lengths_are_not_mapped():
    scores, labels = torch.rand(6, 2, 4).log_softmax(-1), torch.tensor([[1, 2, 2], [3, 1, 0]])
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        torch.vmap(lambda n: torch.ctc_loss(scores, labels, n, torch.tensor([3, 2]), 0, 2))(
            torch.tensor([[6, 5]] * 3)
        )


def test_arguments_named_twice_and_functions_that_give_nothing():
    x = torch.tensor(1.0)
    with pytest.raises(RuntimeError, match="must be unique"):
        torch.func.grad(torch.mul, argnums=(0, -2))(x, x)
    with pytest.raises(RuntimeError, match="must be int"):
        torch.func.grad(torch.mul, argnums=("0",))(x, x)
    for f in (lambda x: [], lambda x: None):
        with pytest.raises(RuntimeError, match="has non-empty output"):
            torch.func.vjp(f, x)
        with pytest.raises(RuntimeError, match="has non-empty output"):
            torch.func.jvp(f, (x,), (x,))


def test_what_is_refused_inside_of_transforms():
    x = torch.rand(3)

    def retains(x):
        y = x.sin()
        y.retain_grad()
        return y.sum()

    with pytest.raises(RuntimeError, match=r"Tensor\.retain_grad\(\) inside of a function"):
        grad(retains)(x)
    z = torch.rand(1, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="jacrev: Expected all inputs to be real"):
        jacrev(lambda t: t.conj())(z)
    with pytest.raises(RuntimeError, match=r"expected f\(\*primals\) to return only tensors"):
        jvp(lambda t: 1, (x,), (x,))


def _refusals(t):
    z, n = t.ones(2, dtype=t.complex64), t.ones(2, dtype=t.int64)
    return [
        lambda: t.func.grad(lambda x: (x * x).sum())(z),
        lambda: t.func.grad(lambda x: (x * (1 + 1j)).sum())(t.ones(2)),
        lambda: t.func.grad_and_value(lambda x: (x * x).sum())(z),
        lambda: t.func.grad(lambda x: x.sum())(n),
        lambda: t.func.vjp(lambda x: x, n),
        lambda: t.func.jvp(lambda x: x, (n,), (n,)),
        lambda: t.func.jvp(lambda x: x, (t.ones(2),), (n,)),
        lambda: t.func.jacfwd(lambda x: x)(n),
    ]


@pytest.mark.parametrize("i", range(len(_refusals(torch))))
def test_numbers_without_gradients_are_refused_as_in_pytorch(i):
    oracle = pytest.importorskip("torch")
    problems = []
    for t in (torch, oracle):
        with pytest.raises((RuntimeError, ValueError)) as problem:
            _refusals(t)[i]()
        problems.append((problem.type, str(problem.value)))
    assert problems[0] == problems[1]


def test_gradients_by_complex_arguments_of_real_results():
    z = torch.tensor([1 + 2j, 3 - 1j])
    assert torch.equal(grad(lambda x: (x * x.conj()).real.sum())(z), 2 * z)
