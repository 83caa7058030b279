"""What backward graphs compute again instead of keeping it, and chains that read the same."""

import copy
import re

import pytest
from compile_checks import compiled_of, no_measuring  # noqa: F401 - a fixture

import rushlight as torch
from rushlight._dynamo._capture import capture
from rushlight._inductor import _joint
from rushlight._inductor.compile_fx import compile_fx

nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.usefixtures("no_measuring")


class Gated(nn.Module):
    """SwiGLU with a root mean square before it, as language models have it."""

    def __init__(self, width=8, inner=12):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        y = self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Wave(nn.Module):
    """GELU written in single operators."""

    def __init__(self, width=8):
        super().__init__()
        self.first, self.second = nn.Linear(width, 16), nn.Linear(16, width)

    def forward(self, x):
        h = self.first(x)
        inner = 0.7978845608028654 * (h + 0.044715 * torch.pow(h, 3.0))
        return self.second(0.5 * h * (1.0 + torch.tanh(inner)))


class Masked(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first = nn.Linear(width, width)

    def forward(self, x):
        h = self.first(x)
        return torch.where(h > 0, h.exp(), h.sigmoid() * h) * F.dropout(h, 0.3) + h.abs().sqrt()


def step(model, run, x, seed=3):
    """The result, the gradients of a step, and the next random number."""
    torch.manual_seed(seed)
    model.zero_grad()
    x = x.clone().requires_grad_()
    y = run(x)
    y.square().mean().backward()
    return y, x.grad, [p.grad for p in model.parameters()], torch.rand(2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("layer", [Gated, Wave, Masked])
def test_values_and_gradients(layer, dtype):
    torch.manual_seed(0)
    model = nn.Sequential(layer(), layer()).to(dtype)
    x, fast = torch.randn(5, 8, dtype=dtype), torch.compile(model)
    for _ in range(3):
        torch.testing.assert_close(step(model, fast, x), step(model, model, x), rtol=0, atol=0)


@pytest.mark.parametrize("layer", [Gated, Wave, Masked])
def test_sizes_that_change(layer):
    torch.manual_seed(0)
    model = nn.Sequential(layer(), layer())
    fast = torch.compile(model, dynamic=True)
    for rows in (5, 7, 20, 11):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(step(model, fast, x), step(model, model, x), rtol=0, atol=0)
    assert len(compiled_of(fast).entries) == 1


@pytest.mark.parametrize("layer", [Gated, Wave])
def test_autocast(layer):
    torch.manual_seed(0)
    model = layer()
    x, fast = torch.randn(5, 8), torch.compile(model)

    def run(function):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return step(model, function, x)

    for _ in range(3):
        torch.testing.assert_close(run(fast), run(model), rtol=0, atol=0)


def kept_shapes(model, x):
    """The shapes that the backward graph takes of the forward graph, and its text."""
    fast, found = torch.compile(model), []
    init = _joint.Joint.__init__

    def watched(self, *args):
        init(self, *args)
        found.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_joint.Joint, "__init__", watched)
        fast(x).sum().backward()
    (joint,) = found
    return [tuple(node.meta["val"].shape) for node in joint.keeps], joint.text, joint.steps[0]


def test_that_less_is_kept():
    """Of GELU in single operators only the product before it and its result are kept."""
    shapes, forward, _ = kept_shapes(Wave(), torch.randn(5, 8))
    assert shapes == [(5, 16), (5, 16)]
    chains = re.findall(r"(.*) = _fused_pointwise", forward)
    assert [len(re.findall("float32", line)) for line in chains] == [1]


def test_that_chains_which_read_the_same_are_one():
    """The gradients of both factors of SwiGLU come of one pass over them."""
    _, _, backward = kept_shapes(Gated(), torch.randn(5, 8, requires_grad=True))
    text = next(iter(backward.backwards.values()))[0]
    lines = [line for line in text.splitlines() if "_fused_pointwise" in line and "[5, 12]" in line]
    assert len(lines) == 1
    assert lines[0].partition("=")[0].count("[5, 12]") == 2


def test_programs_without_a_result_that_has_gradients():
    fast, x = torch.compile(lambda x: (x.exp() * 2).shape[0]), torch.ones(3, 2, requires_grad=True)
    assert [fast(x), fast(x)] == [3, 3]
    assert len(compiled_of(fast).entries) == 1


def test_writes_between_the_passes():
    """What the program may write to is read by the backward pass only where it was read before."""

    def exponential(x):
        return (x.exp().sin() * 2).square()

    def run(function):
        leaf = torch.linspace(-1, 1, 6).requires_grad_()
        x = leaf * 1
        y = function(x)
        with torch.no_grad():
            x.mul_(0)
        y.sum().backward()
        return leaf.grad

    torch.testing.assert_close(run(torch.compile(exponential)), run(exponential), rtol=0, atol=0)


def test_writes_in_the_program():
    def f(x):
        a = x * 2
        b = a.exp()
        c = b.sin() + a
        a = a.detach()
        a.add_(1)
        return c * b * a

    for _ in range(2):
        grads = []
        for run in (torch.compile(f), f):
            x = torch.linspace(-1, 1, 6).requires_grad_()
            try:
                run(x).sum().backward()
                grads.append(x.grad)
            except RuntimeError as error:
                grads.append(str(error)[:40])
        assert type(grads[0]) is type(grads[1])
        if isinstance(grads[0], torch.Tensor):
            torch.testing.assert_close(*grads, rtol=0, atol=0)


def test_gradients_of_some_results_and_of_gradients():
    def f(x, w):
        h = x @ w
        return h.sigmoid() * h, (h.tanh() + 1) * h

    def run(function):
        torch.manual_seed(1)
        x, w = torch.randn(4, 5, requires_grad=True), torch.randn(5, 6, requires_grad=True)
        found = []
        for pick in ((0,), (1,), (0, 1)):
            results = function(x, w)
            found += torch.autograd.grad([results[i].sum() for i in pick], (x, w))
        first = torch.autograd.grad(function(x, w)[1].sum(), x, create_graph=True)[0]
        return [*found, *torch.autograd.grad(first.square().sum(), (x, w))]

    torch.testing.assert_close(run(torch.compile(f)), run(f), rtol=0, atol=0)


def test_what_repeats_its_operand():
    """Sums that are spread over rows again are computed for the rows, and read where they lie."""

    def f(x, w):
        total = (x * w).sum(-1, keepdim=True)
        return (total.expand(6, 9) / 9 * 2).exp() * x + w

    x, w = torch.randn(6, 9), torch.randn(9)
    fast = torch.compile(f)
    for _ in range(2):
        torch.testing.assert_close(fast(x, w), f(x, w), rtol=0, atol=0)
    captured = capture(f, (x, w), {})
    compile_fx(captured.module, captured.example_inputs)
    names = [node.target._opname for node in captured.graph.nodes if hasattr(node.target, "_opname")]
    assert names == ["mul", "sum", "_fused_pointwise", "_fused_pointwise"]


def test_models_of_layers_in_a_row():
    torch.manual_seed(0)
    model = nn.Sequential(*[layer() for layer in (Gated, Wave, Masked, Gated)])
    twin = copy.deepcopy(model)
    fast, x = torch.compile(model), torch.randn(6, 8)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, twin)]
    for seed in range(4):
        results = [step(m, run, x, seed) for m, run in ((model, fast), (twin, twin))]
        torch.testing.assert_close(*results, rtol=0, atol=0)
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=0, atol=0)
