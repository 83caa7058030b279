"""Checkpoints in compiled programs: what they would not keep, the backward graph computes again."""

import pytest
from compile_checks import graphs, no_measuring  # noqa: F401 (a fixture)

import rushlight as torch
from rushlight._dynamo._capture import capture
from rushlight._inductor._joint import Joint
from rushlight.nn import functional as F
from rushlight.utils.checkpoint import checkpoint, checkpoint_sequential

pytestmark = pytest.mark.usefixtures("no_measuring")


class Block(torch.nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.norm, self.layer, self.p = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), p

    def forward(self, x):
        return x + F.dropout(F.gelu(self.layer(self.norm(x))), self.p, self.training)


class Model(torch.nn.Module):
    def __init__(self, p=0.0, **options):
        super().__init__()
        self.blocks, self.options = torch.nn.ModuleList(Block(p) for _ in range(3)), options

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, **self.options) if self.options else block(x)
        return x.sin()


def losses(model, run, calls=3):
    torch.manual_seed(0)
    found, x = [], torch.randn(4, 8, requires_grad=True)
    for _ in range(calls):
        model.zero_grad()
        loss = run(x).square().mean()
        loss.backward()
        found += [
            loss.detach(),
            x.grad.clone(),
            *(p.grad.clone() for p in model.parameters() if p.grad is not None),
        ]
    return found


@pytest.mark.parametrize("p", [0.0, 0.3])
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("backend", ["inductor", "eager", "aot_eager"])
def test_checkpoints_are_part_of_graphs(p, reentrant, backend):
    model = Model(p, use_reentrant=reentrant)
    fast = torch.compile(model, fullgraph=True, backend=backend)
    torch.testing.assert_close(losses(model, fast), losses(model, model), rtol=1e-6, atol=1e-6)
    assert graphs(fast) == 1


def kept(model):
    x = torch.randn(4, 8, requires_grad=True)
    captured = capture(model, (x,), {})
    return Joint(captured.module, captured.backward).keeps


@pytest.mark.parametrize("p, count", [(0.0, 3), (0.3, 6)])
def test_a_checkpoint_keeps_its_inputs_and_random_masks(p, count):
    assert len(kept(Model(p, use_reentrant=False))) == count  # one input of each block, and the last result
    assert len(kept(Model(p))) > 2 * count


def test_functions_that_the_program_makes():
    block = Block(0.2)

    def f(x):
        return checkpoint(lambda y: block(y) * 2, x, use_reentrant=False).sin()

    torch.testing.assert_close(losses(block, torch.compile(f, fullgraph=True)), losses(block, f))


def test_sequences_and_lists():
    layers = torch.nn.Sequential(*(Block() for _ in range(4)))
    fast = torch.compile(lambda x: checkpoint_sequential(layers, 2, x, use_reentrant=False), fullgraph=True)
    torch.testing.assert_close(losses(layers, fast), losses(layers, layers))

    def several(x, scale):
        return x * scale, (x.sin(), 3)

    def f(x):
        first, (second, number) = checkpoint(several, x, scale=2.0, use_reentrant=False)
        return first * second * number

    fast = torch.compile(f, fullgraph=True)
    torch.testing.assert_close(losses(layers, fast)[:2], losses(layers, f)[:2])


def test_autocasting_around_a_checkpoint():
    block = Block()

    def f(x):
        with torch.autocast("cpu", torch.bfloat16):
            return checkpoint(block, x, use_reentrant=False).float()

    for backend in ("inductor", "eager"):
        fast = torch.compile(f, fullgraph=True, backend=backend)
        torch.testing.assert_close(losses(block, fast), losses(block, f))


def test_gradients_of_gradients():
    model = Model(use_reentrant=False)

    def second(run):
        x = torch.linspace(-1, 1, 8).requires_grad_()
        (first,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    torch.testing.assert_close(second(torch.compile(model, fullgraph=True)), second(model))


def test_what_a_graph_does_not_keep_runs_as_it_is_written():
    norm = torch.nn.BatchNorm1d(8)  # counts its batches in both computations

    def f(x):
        return checkpoint(norm, x, use_reentrant=False).sin()

    fast = torch.compile(f)
    losses(norm, fast)
    assert graphs(fast) == 0
    assert norm.num_batches_tracked.item() == 6

    def g(x):
        return checkpoint(torch.sin, x, use_reentrant=False, preserve_rng_state=False)

    fast = torch.compile(g)
    torch.testing.assert_close(losses(norm, fast)[:2], losses(norm, g)[:2])
    assert graphs(fast) == 0


def test_checkpoints_of_operators_that_record_themselves():
    block, steps = Block(0.4), torch.zeros(8)

    def run(make):
        def f(x):
            steps.add_(1)  # which is read too: no pass over a graph may do that twice
            return make(x) * steps

        steps.zero_()
        return f

    def known(x):
        return checkpoint(block, x, use_reentrant=False)

    def made(x):
        return checkpoint(lambda y: block(y), x, use_reentrant=False)

    plain = losses(block, run(known))
    for make, options, count in ((known, {"fullgraph": True}, 1), (made, {}, 0)):
        fast = torch.compile(run(make), **options)
        torch.testing.assert_close(losses(block, fast), plain)
        assert graphs(fast) == count
