"""Inference through graphs that keep what depends on weights alone: never older than the weights."""

import pytest
from compile_checks import compiled_of, no_measuring  # noqa: F401

import rushlight as torch
from rushlight import nn
from rushlight._inductor import config

F = torch.nn.functional

pytestmark = pytest.mark.usefixtures("no_measuring")


class Block(nn.Module):
    """Convolutions of all kinds with what follows them in networks."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(32)
        self.wide = nn.Conv2d(32, 128, 1, bias=False)
        self.wide_norm = nn.BatchNorm2d(128)
        self.deep = nn.Conv2d(128, 128, 3, padding=1, groups=128)
        self.deep_norm = nn.BatchNorm2d(128, affine=False)
        self.square = nn.Conv2d(128, 128, 3, padding=1)
        self.narrow = nn.Conv2d(128, 32, 1)
        self.narrow_norm = nn.BatchNorm2d(32)
        self.head = nn.Linear(32, 10)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.normal_(module.running_mean)
                nn.init.uniform_(module.running_var, 0.5, 2)
                if module.affine:
                    nn.init.normal_(module.weight)
                    nn.init.normal_(module.bias)

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)), inplace=True)
        y = F.relu6(self.wide_norm(self.wide(x)))
        y = F.hardtanh(self.deep_norm(self.deep(y)), -0.5, 2.0)
        y = self.square(y).clamp(min=0.1)
        y = F.relu(x + self.narrow_norm(self.narrow(y)))
        return self.head(y.mean((2, 3)))


def compiled_graph(fast):
    return compiled_of(fast).entries[0].run.__self__


def check(fast, slow, *args):
    with torch.no_grad():
        torch.testing.assert_close(fast(*args), slow(*args), rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("size", [8, 33, 64])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_what_follows_convolutions(size, layout):
    model = Block().eval()
    fast = torch.compile(model)
    x = torch.randn(3, 3, size, size).to(memory_format=layout)
    for _ in range(3):
        check(fast, model, x)
    assert compiled_graph(fast).computed() == 1


def test_convolutions_are_fused():
    from rushlight._dynamo._capture import capture
    from rushlight._inductor.compile_fx import compile_fx

    with torch.no_grad():
        made = capture(Block().eval(), (torch.randn(2, 3, 16, 16),), {})
        program = compile_fx(made.module, made.example_inputs)
    names = [getattr(n.target, "_opname", "") for n in made.graph.nodes]
    assert names.count("_convolution_epilogue") == 5
    assert not {"native_batch_norm", "relu_", "convolution", "_batch_norm_constants"} & set(names)
    assert program.frozen_text.count("_batch_norm_constants(") == 4


def test_halves_and_not_a_number():
    model = Block().eval()
    fast = torch.compile(model)
    x = torch.randn(2, 3, 40, 40)
    x[0, 1, 5, 5] = float("nan")
    x[1, 1, 5, 5] = float("inf")
    check(fast, model, x)
    half = Block().eval().bfloat16()
    fast = torch.compile(half)
    with torch.no_grad():
        y = torch.randn(2, 3, 40, 40).bfloat16()
        torch.testing.assert_close(fast(y), half(y), rtol=5e-2, atol=5e-2)


def writes(model):
    """Ways to change weights, those included that count no version."""
    bn, conv = model.norm, model.square

    def by_numpy():
        model.head.bias.detach().numpy()[:] += 3

    yield "in place", lambda: conv.weight.data.mul_(2)
    yield "running statistics", lambda: bn.running_mean.add_(1)
    yield "data", lambda: bn.weight.data.copy_(torch.ones(32))
    yield "no_grad", lambda: torch.nn.init.normal_(model.wide.weight)
    yield "load", lambda: model.load_state_dict(Block().state_dict())
    yield "set data", lambda: setattr(conv.weight, "data", torch.randn(128, 128, 3, 3))
    yield "train", lambda: (model.train(), model(torch.randn(4, 3, 16, 16)), model.eval())
    yield "storage", lambda: model.head.weight.untyped_storage().copy_(torch.randn(10, 32).untyped_storage())
    yield "detached view", lambda: model.head.weight.detach()[2:4].fill_(7)
    yield (
        "vector",
        lambda: nn.utils.vector_to_parameters(
            torch.randn(sum(p.numel() for p in model.parameters())), model.parameters()
        ),
    )
    yield "numpy", by_numpy
    yield "numpy again", by_numpy


def test_writes_are_seen():
    model = Block().eval()
    fast = torch.compile(model)
    x = torch.randn(2, 3, 40, 40)
    check(fast, model, x)
    for name, write in writes(model):
        before = fast(x).detach().clone()
        with torch.no_grad():
            write()
            check(fast, model, x)
            assert not torch.equal(fast(x), before), name
            check(fast, model, x)
    assert compiled_of(fast).reason is None


def test_eager_sees_no_kept_weights():
    """What kernels keep for a graph is the graph's own: eager runs in between read the weights."""
    model = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.Flatten(), nn.Linear(64 * 196, 64)).eval()
    fast = torch.compile(model)
    x = torch.randn(4, 64, 14, 14) / 4
    check(fast, model, x)
    with torch.no_grad():
        model[0].weight.mul_(3)
        model[2].weight.mul_(3)
        plain = F.linear(
            F.conv2d(x, model[0].weight.clone(), model[0].bias, padding=1).flatten(1),
            model[2].weight.clone(),
            model[2].bias,
        )
        torch.testing.assert_close(model(x), plain, rtol=1e-5, atol=1e-4)
        check(fast, model, x)


def test_square_weights_are_told_from_their_transposes():
    weight = torch.randn(256, 256)

    def both(x):
        return x @ weight + (x @ weight.t()) * 2

    fast = torch.compile(both)
    for _ in range(3):
        x = torch.randn(64, 256)
        torch.testing.assert_close(fast(x), both(x), rtol=1e-4, atol=1e-3)


def test_results_are_no_kept_values():
    """A result that depends on weights alone is the caller's to write to."""
    weight = nn.Parameter(torch.ones(3, 3))

    def f(x):
        doubled = weight * 2
        return x + doubled, doubled, weight.t()

    fast = torch.compile(f)
    with torch.no_grad():
        for _ in range(3):
            total, doubled, turned = fast(torch.zeros(3, 3))
            assert (total == 2).all() and (doubled == 2).all()
            assert turned.data_ptr() == weight.data_ptr()
            total.zero_(), doubled.zero_()


def test_programs_that_write_to_their_state():
    counter, table = torch.zeros(3), torch.ones(3)

    def f(x):
        counter.add_(1)
        return x + counter + table.exp()

    fast, other = torch.compile(f), torch.zeros(3)
    for step in range(1, 5):
        other += 1
        torch.testing.assert_close(fast(torch.zeros(3)), other + torch.ones(3).exp())
        assert counter[0] == step


def test_training_between_evaluations():
    model = Block()
    fast = torch.compile(model)
    x = torch.randn(4, 3, 20, 20)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        model.train()
        optimizer.zero_grad()
        fast(x).square().mean().backward()
        optimizer.step()
        model.eval()
        check(fast, model, x)


def test_freezing_can_be_left_out(monkeypatch):
    monkeypatch.setattr(config, "freezing", False)
    model = Block().eval()
    fast = torch.compile(model)
    check(fast, model, torch.randn(2, 3, 16, 16))
    assert compiled_graph(fast).computed() == 0
