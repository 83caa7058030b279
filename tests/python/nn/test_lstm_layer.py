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


def packed_outcome(m, hidden, bidirectional, create_graph):
    """Sequences of several lengths, packed; states only of what ends in them."""
    m.manual_seed(5)
    layer = m.nn.LSTM(5, hidden, num_layers=2, bidirectional=bidirectional).double()
    x = m.randn(7, 9, 5, dtype=m.float64, requires_grad=True)
    packed = m.nn.utils.rnn.pack_padded_sequence(x, [7, 7, 6, 6, 4, 3, 3, 1, 1])
    y, (h, c) = layer(packed)
    leaves = [x, *layer.parameters()]
    grads = m.autograd.grad(
        (y.data**2).sum() + h.sin().sum() + (c * c).sum(), leaves, create_graph=create_graph
    )
    if create_graph:
        grads += m.autograd.grad(sum((g * g).sum() for g in grads), leaves)
    return [t.detach() for t in (y.data, h, c, *grads)]


@pytest.mark.parametrize(
    ("hidden", "bidirectional", "create_graph"), itertools.product((3, 21), (False, True), (False, True))
)
def test_packed_layers_and_gradients_are_those_of_pytorch(hidden, bidirectional, create_graph):
    options = hidden, bidirectional, create_graph
    for ours, theirs in zip(packed_outcome(rl, *options), packed_outcome(torch, *options), strict=True):
        torch.testing.assert_close(torch.from_numpy(ours.numpy()), theirs, rtol=1e-9, atol=1e-9)


def large_outcome(m, hidden, batch, dtype, batch_first):
    m.manual_seed(1)
    layer = m.nn.LSTM(6, hidden, bidirectional=True, batch_first=batch_first).to(getattr(m, dtype))
    x = m.randn((batch, 5, 6) if batch_first else (5, batch, 6)).to(getattr(m, dtype)).requires_grad_(True)
    y, (h, c) = layer(x)
    leaves = [x, *layer.parameters()]
    grads = m.autograd.grad(y.sin().sum() + h.sum() + (c * c).sum(), leaves)
    return [t.detach().float() for t in (y, h, c, *grads)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("hidden", "batch"), [(16, 1), (33, 7), (64, 13), (100, 6), (272, 3)])
def test_sizes_around_those_of_vectors(hidden, batch, dtype, batch_first):
    options = hidden, batch, dtype, batch_first
    bound = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-3}[dtype]
    for ours, theirs in zip(large_outcome(rl, *options), large_outcome(torch, *options), strict=True):
        scale = float(theirs.abs().max())
        torch.testing.assert_close(torch.from_numpy(ours.numpy()), theirs, rtol=0, atol=bound * max(scale, 1))


def test_threads_do_not_change_the_result():
    layer, x = rl.nn.LSTM(32, 300), rl.randn(6, 40, 32)

    def run(threads):
        before = rl.get_num_threads()
        rl.set_num_threads(threads)
        try:
            layer.zero_grad()
            y, _ = layer(x)
            y.square().sum().backward()
            return y.detach(), layer.weight_hh_l0.grad.clone()
        finally:
            rl.set_num_threads(before)

    for one, three in zip(run(1), run(3), strict=True):
        assert rl.equal(one, three)


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
    try:
        of_pytorch = dtypes(torch, which)
    except RuntimeError as error:
        pytest.skip(f"PyTorch has no bfloat16 on this processor: {error}")
    for (ours, values), (theirs, expected) in zip(dtypes(rl, which), of_pytorch, strict=True):
        assert ours == theirs
        torch.testing.assert_close(torch.from_numpy(values.numpy()), expected, rtol=0.05, atol=0.02)


def test_vmap_over_layers_is_a_loop():
    layer, x = rl.nn.LSTM(3, 4), rl.randn(6, 5, 2, 3)
    mapped = rl.vmap(lambda t: layer(t)[0])(x)
    assert rl.allclose(mapped, rl.stack([layer(t)[0] for t in x]), atol=1e-6)


def test_nodes_have_the_names_that_programs_print():
    names = [
        [t.grad_fn.name() for t in (y, h, c)]
        for m in (rl, torch)
        for y, (h, c) in [m.nn.LSTM(3, 4)(m.ones(2, 1, 3))]
    ]
    assert names[0] == names[1]


def saved_by(run):
    """The sizes of the tensors that a graph keeps, each once."""
    kept = {}

    def pack(t):
        kept[t.untyped_storage()._cdata] = tuple(t.shape)
        return t

    with rl.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        result = run()
    return result, sorted(kept.values())


@pytest.mark.parametrize("batch_first", [False, True])
def test_graphs_keep_the_input_and_not_its_product(batch_first):
    layer, x = rl.nn.LSTM(5, 8, batch_first=batch_first), rl.randn(7, 3, 5)
    _, kept = saved_by(lambda: layer(x)[0].sum())
    assert (7, 3, 5) in kept
    assert kept.count((7, 3, 32)) == 1  # the gates


def test_graphs_of_packed_sequences_keep_the_input_and_not_its_product():
    layer, x = rl.nn.LSTM(5, 8), rl.randn(7, 3, 5)
    _, kept = saved_by(lambda: layer(rl.nn.utils.rnn.pack_padded_sequence(x, [7, 5, 2]))[0].data.sum())
    assert kept.count((14, 32)) == 1 and (14, 5) in kept


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["steps first", "batch first", "packed"])
def test_second_derivatives_by_the_input_and_both_weights(kind, bias):
    rl.manual_seed(2)
    layer = rl.nn.LSTM(2, 3, bias=bias, batch_first=kind == "batch first").double()
    x = rl.randn(4, 3, 2, dtype=rl.float64, requires_grad=True)

    def run(x, *weights):
        names = [name for name, _ in layer.named_parameters()]
        given = rl.nn.utils.rnn.pack_padded_sequence(x, [4, 2, 1]) if kind == "packed" else x
        y, (h, c) = rl.func.functional_call(layer, dict(zip(names, weights, strict=True)), (given,))
        return y.data if kind == "packed" else y, h, c

    leaves = (x, *(p.detach().requires_grad_() for p in layer.parameters()))
    assert rl.autograd.gradcheck(run, leaves)
    assert rl.autograd.gradgradcheck(run, leaves)


@pytest.mark.parametrize("wanted", ["input", "weight_ih_l0", "weight_hh_l0", "bias_ih_l0"])
def test_one_operand_alone_has_a_gradient(wanted):
    def run(m):
        m.manual_seed(4)
        layer, x = m.nn.LSTM(5, 6), m.randn(4, 3, 5)
        for p in layer.parameters():
            p.requires_grad_(False)
        leaf = x if wanted == "input" else getattr(layer, wanted)
        leaf.requires_grad_()
        return m.autograd.grad(layer(x)[0].sin().sum(), leaf)[0]

    torch.testing.assert_close(torch.from_numpy(run(rl).numpy()), run(torch))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_operator_projects_its_input(keep, bias):
    hidden, x = 6, rl.randn(4, 3, 5)
    w_ih, w_hh, b = rl.randn(24, 5), rl.randn(24, hidden), rl.randn(24) if bias else None
    state, settings = [rl.randn(3, hidden), rl.randn(3, hidden)], ([], True, False, keep)
    layer = rl.ops.aten._lstm_layer.default
    apart = layer(rl.nn.functional.linear(x, w_ih, b), *state, w_hh, *settings)
    whole = layer(x, *state, w_hh, *settings, w_ih, b)
    for one, other in zip(whole, apart, strict=True):
        assert rl.equal(one, other)
    parts = rl._decomp.decomposition_table[layer](x, *state, w_hh, *settings, w_ih, b)
    for one, other in zip(whole[:3], parts[:3], strict=True):
        assert rl.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("library", [rl, torch])
def test_lists_of_sequences_say_what_they_may_hold(library):
    rnn, ones = library.nn.utils.rnn, library.ones
    with pytest.raises(RuntimeError, match="Expected padding_side to be one of left or right, but got x"):
        rnn.pad_sequence([ones(1)], padding_side="x")
    with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got int"):
        rnn.pad_sequence([ones(1), 1])
    with pytest.raises(RuntimeError, match="should be a 1D CPU int64 tensor, but got 2D cpu Long tensor"):
        rnn.pack_padded_sequence(ones(5, 3, 2), ones(3, 1, dtype=library.int64))
