"""LSTM layers computed as one operator, and recurrent layers under autocast, against PyTorch."""

import itertools

import pytest

import rushlight as rl

torch = pytest.importorskip("torch")


def outcome(m, dtype, bidirectional, batch_first, state, create_graph):
    """Outputs and gradients of a two-layer LSTM, and the gradients of their squares where asked for."""
    m.manual_seed(3)
    dtype = getattr(m, dtype)
    layer = m.nn.LSTM(5, 6, num_layers=2, bidirectional=bidirectional, batch_first=batch_first).to(dtype)
    x = m.randn(4, 3, 5).to(dtype).requires_grad_(True)
    shape = (4 if bidirectional else 2, 4 if batch_first else 3, 6)
    first = [m.randn(shape).to(dtype).requires_grad_(True) for _ in range(2)] if state else []
    y, (h, c) = layer(x, tuple(first)) if state else layer(x)
    loss = (y * y).sum() + h.sin().sum() + (c * c).sum()
    leaves = [x, *first, *layer.parameters()]
    grads = m.autograd.grad(loss, leaves, create_graph=create_graph)
    if create_graph:
        grads += m.autograd.grad(sum((g * g).sum() for g in grads), leaves)
    return [t.detach() for t in (y, h, c, *grads)]


@pytest.mark.parametrize(
    ("dtype", "bidirectional", "batch_first", "state", "create_graph"),
    itertools.product(("float32", "float64"), (False, True), (False, True), (False, True), (False, True)),
)
def test_layers_and_gradients_are_those_of_pytorch(dtype, bidirectional, batch_first, state, create_graph):
    options = (dtype, bidirectional, batch_first, state, create_graph)
    tolerance = 1e-10 if dtype == "float64" else 1e-4
    for ours, theirs in zip(outcome(rl, *options), outcome(torch, *options), strict=True):
        torch.testing.assert_close(torch.from_numpy(ours.numpy()), theirs, rtol=tolerance, atol=tolerance)


def test_last_states_alone_have_gradients():
    def run(m):
        m.manual_seed(0)
        layer, x = m.nn.LSTM(3, 4), m.ones(5, 2, 3)
        layer(x)[1][1].sum().backward()
        return layer.weight_hh_l0.grad

    torch.testing.assert_close(torch.from_numpy(run(rl).numpy()), run(torch))


def dtypes(m, which):
    m.manual_seed(0)
    x = m.randn(5, 3, 8)
    state = m.zeros(1, 3, 16)
    with m.autocast("cpu", dtype=m.bfloat16):
        if which == "lstm":
            y, (h, c) = m.nn.LSTM(8, 16)(x, (state, state))
            found = [y, h, c]
        elif which == "stacked":
            found = [m.nn.LSTM(16, 4)(m.nn.LSTM(8, 16)(x)[0])[0]]
        elif which == "gru":
            found = list(m.nn.GRU(8, 16)(x, state))
        elif which == "rnn":
            found = [m.nn.RNN(8, 16)(x)[0]]
        elif which == "packed":
            packed = m.nn.utils.rnn.pack_padded_sequence(x, [5, 4, 3])
            y, (h, c) = m.nn.LSTM(8, 16)(packed)
            found = [y.data, h, c]
        else:
            found = list(m.nn.LSTMCell(8, 16)(x[0])) + [m.nn.GRUCell(8, 16)(x[0])]
    return [(str(t.dtype).split(".")[-1], t.detach().float()) for t in found]


@pytest.mark.parametrize("which", ["lstm", "stacked", "gru", "rnn", "packed", "cells"])
def test_autocast_gives_pytorchs_types(which):
    for (ours, values), (theirs, expected) in zip(dtypes(rl, which), dtypes(torch, which), strict=True):
        assert ours == theirs
        torch.testing.assert_close(torch.from_numpy(values.numpy()), expected, rtol=0.05, atol=0.02)


def test_vmap_over_layers_is_a_loop():
    layer, x = rl.nn.LSTM(3, 4), rl.randn(6, 5, 2, 3)
    mapped = rl.vmap(lambda t: layer(t)[0])(x)
    assert rl.allclose(mapped, rl.stack([layer(t)[0] for t in x]), atol=1e-6)
