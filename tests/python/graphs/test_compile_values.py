"""`torch.compile` never gives another answer: values, shapes and memory of tensors, and rarer things."""

import dataclasses
import logging

import pytest
from compile_checks import X, check, compiled_of, graphs, no_measuring  # noqa: F401 - a fixture

import rushlight as torch

nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.usefixtures("no_measuring")


# --- values of tensors --------------------------------------------------------------------------------


def branch(x):
    return x * 2 if x.sum() > 0 else x - 1


def number(x):
    return x + x.max().item()


def listed(x):
    return x + sum(x[0].tolist())


def to_numpy(x):
    return x + float(x.numpy().sum())


def formatted(x):
    return x + len(str(x))


def chosen(x):
    return x[x > 0]


def where_true(x):
    return x.nonzero()


def loop(x):
    while x.abs().max() > 1:
        x = x / 2
    return x


class Held(nn.Module):
    def __init__(self, read):
        super().__init__()
        self.register_buffer("value", torch.tensor(2.0))
        self.plain, self.read = torch.tensor([3.0]), read

    def forward(self, x):
        return x * self.read(self.value) + self.read(self.plain)


@pytest.mark.parametrize(
    "read",
    [
        float,
        int,
        bool,
        lambda t: t.item(),
        lambda t: t.tolist() if t.dim() == 0 else t.tolist()[0],
        lambda t: float(t.numpy().sum()),
        lambda t: 5 if t else 6,
        lambda t: 5 if t == 2 else 6,
        lambda t: float(f"{t.sum():.1f}"),
        lambda t: [10, 20, 30, 40, 50][t.int()] if t.dim() == 0 else 1,
        lambda t: float(t.reshape(-1)[0]),
        lambda t: t.untyped_storage()[3],
        lambda t: float(torch.equal(t, torch.tensor(2.0))),
    ],
)
def test_values_of_buffers(read):
    model = Held(read)
    fast = torch.compile(model)
    for value in (2.0, 4.0, 0.0, 1.0):
        model.value.fill_(value)
        model.plain.fill_(value)
        assert torch.equal(fast(X), model(X))


@pytest.mark.parametrize("f", [branch, number, listed, to_numpy, formatted, chosen, where_true, loop])
def test_values_decide(f):
    fast = check(f, (X,), (-X,), (X * 3,), graph=False)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"test_compile_values.py:\d+\)[\s\S]*way out"):
        torch.compile(f, fullgraph=True)(X)
    assert "test_compile_values.py" in compiled_of(fast).reason


# --- tensors of calls ---------------------------------------------------------------------------------


def test_shapes_dtypes_strides():
    check(
        lambda x: (x.shape[0] * x.stride(0) + x).to(torch.float64) if x.dtype == torch.float32 else x + 1,
        (X,),
        (X[:2],),
        (X.t(),),
        (X.double(),),
        (X.int(),),
        (X[:, ::2],),
    )


def test_grad_modes():
    model = nn.Linear(4, 4)
    fast = torch.compile(model)
    x = X.clone().requires_grad_()
    assert fast(X).requires_grad
    with torch.no_grad():
        assert not fast(X).requires_grad
    with torch.inference_mode():
        assert fast(X).is_inference()
    fast(x).sum().backward()
    assert torch.equal(x.grad, model.weight.sum(0).expand(3, 4))
    model.requires_grad_(False)
    assert not fast(X).requires_grad
    assert torch.equal(fast(X), model(X))


def test_default_dtype_and_autocast():
    def f(x):
        return F.linear(x, torch.ones(4, 4)) + torch.tensor(1.5)

    fast = torch.compile(f)
    fast(X)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert fast(X).dtype == f(X).dtype and torch.equal(fast(X), f(X))
    with torch.autocast("cpu", dtype=torch.float16):
        assert fast(X).dtype == f(X).dtype
    try:
        torch.set_default_dtype(torch.float64)
        assert fast(X.double()).dtype == f(X.double()).dtype
    finally:
        torch.set_default_dtype(torch.float32)
    assert fast(X).dtype == torch.float32


def test_inputs_written_in_place():
    def f(x, y):
        x.add_(1)
        y[0] = x[1]
        return x * y

    fast = torch.compile(f)
    for _ in range(3):
        a, b = X.clone(), X.clone()
        c, d = X.clone(), X.clone()
        assert torch.equal(fast(a, b), f(c, d)) and torch.equal(a, c) and torch.equal(b, d)
        same, twin = X.clone(), X.clone()
        assert torch.equal(fast(same, same), f(twin, twin)) and torch.equal(same, twin)
        base, other = torch.zeros(6, 4), torch.zeros(6, 4)
        assert torch.equal(fast(base[:3], base[1:4]), f(other[:3], other[1:4])) and torch.equal(base, other)


def test_outputs_that_alias():
    def f(x):
        return x, x.view(-1), x.t(), [x[0]]

    fast = torch.compile(f)
    for _ in range(2):
        x = X.clone()
        same, flat, turned, (row,) = fast(x)
        assert same is x
        flat[0] = 100
        row[1] = 50
        assert x[0, 0] == 100 and turned[1, 0] == 50


def test_fresh_results_at_each_call():
    def f(x):
        return torch.tensor([1.0, 2.0]), torch.zeros(2), x + 0

    fast = torch.compile(f)
    for _ in range(3):
        a, b, c = fast(X)
        assert a.tolist() == [1, 2] and b.tolist() == [0, 0] and torch.equal(c, X)
        a.add_(1), b.add_(1), c.add_(1)


def test_identity_of_arguments():
    check(lambda a, b: a + 1 if a is b else a - b, (X, X), (X, X.clone()), (X, X))


def test_containers_and_keywords():
    @dataclasses.dataclass
    class Options:
        factor: int = 2

    def f(x, *rest, factor=1, **more):
        return {"sum": x + sum(rest), "list": [x * factor, more.get("z")]}

    fast = torch.compile(f)
    calls = [((X,), {}), ((X, 1, 2), {}), ((X,), {"factor": 3}), ((X,), {"z": X}), ((X, X), {"z": None})]
    for args, kwargs in calls * 2:
        torch.testing.assert_close(fast(*args, **kwargs), f(*args, **kwargs))
    options = Options()
    g = torch.compile(lambda x, o: x * o.factor)
    assert torch.equal(g(X, options), X * 2)
    options.factor = 5
    assert torch.equal(g(X, options), X * 5)


def test_errors_are_those_of_the_program():
    def f(x, y):
        return x @ y

    fast = torch.compile(f)
    fast(X, X.t())
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        fast(X, X)

    def g(x):
        if x.shape[0] == 3:
            raise KeyError("three")
        return x

    with pytest.raises(KeyError, match="three"):
        torch.compile(g)(X)


def test_recompiles_are_bounded(caplog, monkeypatch):
    # PyTorch itself, where another test imported it, keeps messages of these loggers from the root.
    for name in ("torch", "torch.__recompiles"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    fast = torch.compile(lambda x, n: x * n)
    with caplog.at_level(logging.INFO, "torch.__recompiles"):
        for n in range(20):
            assert torch.equal(fast(X, n), X * n)
    assert graphs(fast) == torch._dynamo.config.recompile_limit
    assert "argument 1 was 0" in caplog.text and "which is the limit" in caplog.text
    assert max(map(len, caplog.text.splitlines())) < 500


# --- what is easily overlooked --------------------------------------------------------------------------


def test_order_of_keys():
    table = {"a": 2.0, "b": 3.0}

    def f(x, d, **more):
        for value in (*table.values(), *d.values(), *more.values()):
            x = (x + 1) * value
        return x

    fast = torch.compile(f)
    calls = [
        ({"p": 1, "q": 5}, {"u": 2, "v": 7}),
        ({"q": 5, "p": 1}, {"u": 2, "v": 7}),
        ({"p": 1, "q": 5}, {"v": 7, "u": 2}),
    ]
    for _ in range(2):
        for d, more in calls:
            assert torch.equal(fast(X, d, **more), f(X, d, **more))
        table["a"] = table.pop("a")


def test_attributes_of_tensors():
    weight = torch.ones(4)
    weight.scale = 2.0

    def f(x):
        x = x * getattr(x, "factor", 1)
        return x * weight.scale if hasattr(weight, "scale") else x + weight

    fast = torch.compile(f)
    for _ in range(2):
        assert torch.equal(fast(X), f(X))
    weight.scale = 3.0
    assert torch.equal(fast(X), f(X))
    marked = X.clone()
    marked.factor = 10
    assert torch.equal(fast(marked), f(marked))
    del weight.scale
    assert torch.equal(fast(X), f(X))


def test_sets_and_slices():
    names, part = {"a"}, slice(0, 2)

    def f(x):
        return x[part] * (2 if "a" in names else 3)

    fast = torch.compile(f)
    assert torch.equal(fast(X), X[:2] * 2)
    names.remove("a")
    assert torch.equal(fast(X), X[:2] * 3)
    part = slice(torch.tensor(1), 3)
    assert torch.equal(fast(X), X[1:3] * 3)


def test_modes_and_transforms_pass_by():
    f = torch.compile(lambda x: (x * 2).sin())
    f(X)
    assert torch.equal(torch.func.vmap(f)(X), (X * 2).sin())
    assert torch.allclose(torch.func.grad(lambda x: f(x).sum())(X), 2 * (X * 2).cos())
    for _ in range(3):
        with torch.profiler.profile() as profile:
            f(X)
        assert any("sin" in event.name for event in profile.events())
    assert graphs(f) == 1 and compiled_of(f).reason is None
    swapped, other = nn.Linear(4, 4), nn.Linear(4, 4)
    g = torch.compile(swapped)
    with torch.no_grad():
        g(X), g(X)
        torch.utils.swap_tensors(swapped.weight, other.weight)
        assert torch.equal(g(X), swapped(X))
