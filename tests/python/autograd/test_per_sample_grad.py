"""Gradients by example, against one backward pass for each."""

import pytest

import rushlight as torch
from rushlight.nn.utils._per_sample_grad import call_for_per_sample_grads


def one_by_one(module, x, scale):
    grads = []
    for example in x:
        module.zero_grad()
        (module(example[None]).pow(2).sum() * scale).backward()
        grads.append([p.grad.clone() for p in module.parameters()])
    module.zero_grad()
    return [torch.stack(each) for each in zip(*grads)]


MODULES = {
    "linear": (
        lambda: torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)),
        (4,),
    ),
    "conv": (lambda: torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.GroupNorm(2, 4)), (2, 5, 6)),
    "layer_norm": (lambda: torch.nn.LayerNorm(6), (3, 6)),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_equals_a_loop(name, reduction):
    torch.manual_seed(0)
    make, shape = MODULES[name]
    module, x = make().double(), torch.randn(3, *shape, dtype=torch.float64)
    expected = one_by_one(module, x, 1.0)
    loss = call_for_per_sample_grads(module, loss_reduction=reduction)(x).pow(2).sum()
    (loss / 3 if reduction == "mean" else loss).backward()
    for parameter, grads in zip(module.parameters(), expected):
        torch.testing.assert_close(parameter.grad_sample, grads)
        assert parameter.grad is None


def test_examples_in_the_second_dimension():
    torch.manual_seed(0)
    module, x = torch.nn.Linear(4, 2).double(), torch.randn(5, 3, 4, dtype=torch.float64)
    out = call_for_per_sample_grads(module, batch_first=False)(x)
    assert out.shape == (5, 3, 2)
    out.pow(2).sum().backward()
    for parameter, grads in zip(module.parameters(), one_by_one(module, x.transpose(0, 1), 1.0)):
        torch.testing.assert_close(parameter.grad_sample, grads)


def test_frozen_parameters_get_none():
    module = torch.nn.Linear(4, 2)
    module.bias.requires_grad_(False)
    call_for_per_sample_grads(module)(torch.rand(3, 4)).sum().backward()
    assert module.weight.grad_sample.shape == (3, 2, 4) and not hasattr(module.bias, "grad_sample")


def test_wrong_calls_say_so():
    module = torch.nn.Linear(4, 2)
    with pytest.raises(RuntimeError, match="sum or mean"):
        call_for_per_sample_grads(module, loss_reduction="max")
    with pytest.raises(RuntimeError, match="must be nn.Module"):
        call_for_per_sample_grads(torch.rand(3))
    with pytest.raises(RuntimeError, match="explicitly"):
        call_for_per_sample_grads(torch.nn.Bilinear(4, 4, 2))(torch.rand(3, 4), torch.rand(2, 4))
    call_for_per_sample_grads(module)(torch.rand(3, 4)).sum().backward()
    with pytest.raises(RuntimeError, match="clear"):
        call_for_per_sample_grads(module)


def sequences(kind, lengths, batch_first):
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(3, 4, 2, batch_first=batch_first).double()
    inputs = [torch.randn(n, 3, dtype=torch.float64) for n in lengths]
    state = torch.randn(2, len(lengths), 4, dtype=torch.float64)
    return layer, inputs, (state, state.flip(0)) if kind == "LSTM" else state


def gradients_of_each(layer, inputs, states):
    expected = []
    for i, x in enumerate(inputs):
        mine = tuple(s[:, i] for s in states) if isinstance(states, tuple) else states[:, i]
        output, _ = layer(x, mine)
        expected.append(torch.autograd.grad(output.pow(2).sum(), list(layer.parameters())))
    return [torch.stack(each) for each in zip(*expected)]


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("packed", [True, False])
def test_recurrent_layers_with_states(kind, packed):
    lengths = [2, 5, 4] if packed else [5, 5, 5]
    layer, inputs, states = sequences(kind, lengths, batch_first=True)
    rnn = torch.nn.utils.rnn
    x = rnn.pack_sequence(inputs, enforce_sorted=False) if packed else torch.stack(inputs)
    plain, _ = layer(x, states)
    output, final = call_for_per_sample_grads(layer, batch_size=3)(x, states)
    if packed:
        torch.testing.assert_close(output.data, plain.data)
        output = output.data
    assert (final[0] if kind == "LSTM" else final).shape == (2, 3, 4)
    output.pow(2).sum().backward()
    for parameter, grads in zip(layer.parameters(), gradients_of_each(layer, inputs, states)):
        torch.testing.assert_close(parameter.grad_sample, grads)
