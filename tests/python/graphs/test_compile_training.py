"""Training through `torch.compile`: the backward pass is a graph too, and no gradient tells."""

import copy
import gc
import weakref

import pytest
from compile_checks import X, compiled_of, graphs, no_measuring  # noqa: F401 - a fixture

import rushlight as torch

nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.usefixtures("no_measuring")


def is_joint(result):
    return result.grad_fn is not None and result.grad_fn.name() == "CompiledFunctionBackward"


def train(model, run, batch, steps=3):
    """Losses, gradients of the last step, and the state after some steps."""
    torch.manual_seed(7)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = run(*batch).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.grad for p in model.parameters()], list(model.state_dict().values())


def same_training(model, *batch, joint=True):
    twin = copy.deepcopy(model)
    fast = torch.compile(model)
    assert is_joint(fast(*batch)) == joint, compiled_of(fast).reason
    model.load_state_dict(twin.state_dict())
    torch.testing.assert_close(train(model, fast, batch), train(twin, twin, batch), rtol=0, atol=0)
    assert graphs(fast) == 1


class Residual(nn.Module):
    def __init__(self, activation, norm):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 8)
        self.activation, self.norm = activation, norm

    def forward(self, x):
        return x + self.second(self.activation(self.first(self.norm(x)))) * 0.5


ACTIVATIONS = [
    nn.ReLU(), nn.ReLU(inplace=True), nn.GELU(), nn.SiLU(), nn.Tanh(), nn.LeakyReLU(), nn.Hardtanh(),
    nn.Softplus(), nn.Hardswish(), nn.Hardsigmoid(), nn.Threshold(0.1, -1.0),
]  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("norm", [nn.LayerNorm(8), nn.RMSNorm(8), nn.BatchNorm1d(8), nn.Identity()])
def test_feed_forward(activation, norm):
    torch.manual_seed(0)
    same_training(Residual(activation, norm), torch.randn(5, 8))


def test_images():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(8, 4),
    )
    same_training(model, torch.randn(4, 3, 12, 12))


class Attention(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.qkv, self.out, self.causal = nn.Linear(16, 48), nn.Linear(16, 16), causal

    def forward(self, x):
        q, k, v = (t.view(2, 6, 4, 4).transpose(1, 2) for t in self.qkv(x).split(16, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(a.transpose(1, 2).reshape(2, 6, 16))


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    torch.manual_seed(0)
    same_training(Attention(causal), torch.randn(2, 6, 16))


def test_embedding_and_weights_used_twice():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.middle = nn.Embedding(10, 8), nn.Linear(8, 8)

        def forward(self, tokens):
            x = self.embedding(tokens)
            x = torch.tanh(self.middle(self.middle(x)))
            return x @ self.embedding.weight.t()

    torch.manual_seed(0)
    same_training(Tied(), torch.randint(0, 10, (3, 5)))


def test_recurrent_layer_with_unused_state():
    torch.manual_seed(0)
    model = nn.LSTM(4, 6, batch_first=True)
    twin, x = copy.deepcopy(model), torch.randn(3, 5, 4)
    fast = torch.compile(model)
    for picked in (lambda out: out[0], lambda out: out[1][0], lambda out: out[0].sum() + out[1][1]):
        grads = []
        for m, run in ((model, fast), (twin, twin)):
            m.zero_grad()
            picked(run(x)).sum().backward()
            grads.append([p.grad for p in m.parameters()])
        assert all(torch.equal(a, b) for a, b in zip(*grads))


# --- what autograd promises ---------------------------------------------------------------------------


def squared(x, w):
    return torch.tanh(x @ w) * x.sum()


def inputs():
    torch.manual_seed(1)
    return [torch.randn(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(2)]


def test_gradients_of_gradients():
    fast = torch.compile(squared)
    assert is_joint(fast(*inputs()))
    assert torch.autograd.gradcheck(fast, inputs()) and torch.autograd.gradgradcheck(fast, inputs())
    found = []
    for f in (fast, squared):
        x, w = inputs()
        first = torch.autograd.grad(f(x, w).sum(), (x, w), create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), (x, w)))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_random_numbers_are_drawn_once():
    def f(x):
        return F.dropout(x.square(), 0.5) * x

    fast, found = torch.compile(f), []
    for run in (fast, f):
        x = torch.ones(40, requires_grad=True)
        torch.manual_seed(2)
        y = run(x)
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        found.append((y, first, second, torch.rand(3)))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_graphs_are_freed_or_kept():
    fast = torch.compile(squared)
    x, w = inputs()
    y = fast(x, w).sum()
    y.backward(retain_graph=True)
    once = x.grad.clone()
    y.backward()
    assert torch.equal(x.grad, 2 * once)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_writes_before_the_backward_pass():
    fast = torch.compile(squared)
    x, w = inputs()
    y = fast(x, w).sum()
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    z = fast(*inputs())
    z.mul_(2)  # squared does not need its own result
    z.sum().backward()


def test_hooks():
    fast, seen = torch.compile(squared), []
    x, w = inputs()
    fast(x, w).sum().backward()
    before = x.grad.clone()
    x.grad = None
    handle = x.register_hook(lambda g: seen.append("x") or g * 2)
    y = fast(x, w)
    y.retain_grad()
    y.register_hook(lambda g: seen.append("y"))
    y.sum().backward()
    assert seen == ["y", "x"] and torch.equal(x.grad, 2 * before) and torch.equal(y.grad, torch.ones_like(y))
    handle.remove()


def test_hooks_of_saved_tensors_see_what_the_program_saves():
    fast = torch.compile(squared)
    fast(*inputs()), fast(*inputs())
    counts = []
    for f in (fast, squared):
        seen = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, s=seen: s.append(t.shape) or t, lambda t: t):
            f(*inputs()).sum().backward()
        counts.append(seen)
    assert counts[0] == counts[1] and counts[0]
    with torch.autograd.detect_anomaly(check_nan=True):
        y = fast(*inputs())
        assert not is_joint(y)


def test_inputs_with_a_history():
    found = []
    for f in (torch.compile(squared), squared):
        x, w = inputs()
        f(x * 2, w.exp()).sum().backward()
        found.append((x.grad, w.grad))
    assert all(torch.equal(a, b) for a, b in zip(*found))


@pytest.mark.parametrize("which", [(True, False), (False, True)])
def test_what_no_gradient_reaches_has_none(which):
    def f(x, w):
        return x * 2, w.exp() + w.detach()

    fast, found = torch.compile(f), []
    for run in (fast, f):
        x, w = inputs()
        sum(y.sum() for y, wanted in zip(run(x, w), which) if wanted).backward()
        found.append((x.grad, w.grad))
    for got, expected in zip(*found):
        assert (got is None) == (expected is None) and (got is None or torch.equal(got, expected))


def test_gradients_between_results():
    def f(x, w):
        h = torch.tanh(x @ w)
        return h, h.square().sum()

    found = []
    for run in (torch.compile(f), f):
        x, w = inputs()
        h, loss = run(x, w)
        found.append(torch.autograd.grad(loss, (h, w)))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_results_that_are_arguments_or_views_of_them():
    def f(x, w):
        return x, x.view(-1), w * 2

    fast = torch.compile(f)
    for _ in range(2):
        x, w = inputs()
        same, flat, doubled = fast(x, w)
        assert same is x and flat._base is x
        (flat.sum() + doubled.sum()).backward()
        assert torch.equal(x.grad, torch.ones_like(x))


def test_results_may_be_written_to():
    def f(x, w):
        return (x @ w).view(9)

    found = []
    for run in (torch.compile(f), f):
        x, w = inputs()
        y = run(x, w)
        y[0] = 0
        y.mul_(w.sum())
        y.sum().backward()
        found.append((y, x.grad, w.grad))
    assert all(torch.equal(a, b) for a, b in zip(*found))


WRITES = {
    "square_": lambda v: v.square_(),
    "deg2rad_": lambda v: v.deg2rad_(),
    "arctan2_": lambda v: v.arctan2_(torch.full((2, 4), 0.5)),
    "fix_": lambda v: v.fix_(),
}


@pytest.mark.parametrize("part", [slice(None), slice(1, 3)])
@pytest.mark.parametrize("write", WRITES)
def test_composites_write_through_views(write, part):
    """What a composite keeps of its target belongs to one run, as all memory does that a run makes."""

    def f(x):
        y = x * 2
        WRITES[write](y[part][:2])
        return y.exp().sum()

    fast = torch.compile(f)
    for seed in range(3):
        torch.manual_seed(seed)
        x, again = (torch.randn(3, 4).requires_grad_() for _ in range(2))
        again.data.copy_(x.data)
        fast(x).backward(), f(again).backward()
        torch.testing.assert_close(x.grad, again.grad)
    assert compiled_of(fast).reason is None


def test_buffers_that_are_read_and_written():
    class Moving(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            y = (x - self.mean) * self.weight
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            return y

    same_training(Moving(), X, joint=False)


def test_parts_without_gradients():
    model, x = Residual(nn.ReLU(), nn.LayerNorm(8)), torch.randn(5, 8)
    model.first.requires_grad_(False)
    fast = torch.compile(model)
    for _ in range(2):
        fast(x).sum().backward()
        assert model.first.weight.grad is None and model.second.weight.grad is not None
    model.first.requires_grad_(True)
    fast(x).sum().backward()
    assert model.first.weight.grad is not None


def test_autocast():
    torch.manual_seed(0)
    model = Residual(nn.GELU(), nn.LayerNorm(8))
    twin, x, found = copy.deepcopy(model), torch.randn(5, 8), []
    fast = torch.compile(model)
    for m, run in ((model, fast), (twin, twin)):
        for _ in range(2):
            m.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = run(x)
            y.float().sum().backward()
        found.append([y, *(p.grad for p in m.parameters())])
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_gradients_in_batches():
    fast, found = torch.compile(squared), []
    for f in (fast, squared):
        x, w = inputs()
        y = f(x, w)
        found.append(
            torch.autograd.grad(y, (x, w), torch.eye(9).double().view(9, 3, 3), is_grads_batched=True)
        )
    assert all(torch.allclose(a, b) for a, b in zip(*found))


def test_memory_of_a_step_is_given_back():
    fast = torch.compile(squared)
    x, w = inputs()
    y = fast(x, w)
    alive = weakref.ref(x)
    y.sum().backward()
    del x, y
    gc.collect()
    assert alive() is None
    x, w = inputs()
    y = fast(x, w)
    alive = weakref.ref(x)
    del x, y  # without a backward pass
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dropout_p": 0.5},
        {"is_causal": True, "dropout_p": 0.3},
        {"mask": "float"},
        {"mask": "bool", "dropout_p": 0.2},
    ],
)
def test_attention_is_a_part_of_the_backward_graph(options, dtype):
    options = dict(options)
    kind = options.pop("mask", None)

    def f(q, k, v, scores):
        mask = {None: None, "float": scores, "bool": scores.detach() > 0}[kind]
        return F.scaled_dot_product_attention(q * 2, k, v, mask, **options).sin()

    def run(function):
        torch.manual_seed(0)
        found = []
        for _ in range(3):
            inputs = [torch.randn(2, 2, 5, 8, dtype=dtype).requires_grad_() for _ in range(3)]
            inputs.append(torch.randn(2, 2, 5, 5, dtype=dtype).requires_grad_(kind == "float"))
            result = function(*inputs)
            result.float().square().sum().backward()
            found += [result.detach(), *(x.grad for x in inputs if x.requires_grad)]
        return found, result.grad_fn.name()

    (plain, _), (fast, step) = run(f), run(torch.compile(f, fullgraph=True))
    assert step == "CompiledFunctionBackward"
    torch.testing.assert_close(fast, plain, rtol=0, atol=0)


@pytest.mark.parametrize("pool", [nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(8)])
def test_pooling_of_images_that_leave_the_caches(pool):
    """Forward layers run on an example at a time; gradients of pooling are given the sizes of all."""
    model = nn.Sequential(nn.Conv2d(2, 48, 3, padding=1), nn.ReLU(), pool, nn.ReLU())
    same_training(model, torch.randn(3, 2, 128, 128, requires_grad=True))
