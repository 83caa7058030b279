"""Operators that only this package has, in terms of those that PyTorch has too."""

import functools

import rushlight as torch


def _lstm_layer(
    projected, hx, cx, w_hh, batch_sizes, reverse, batch_first, keep, w_ih=None, bias=None,
):  # fmt: skip
    """A direction of a layer, step by step; what only its backward pass needs is left empty."""
    if w_ih is not None:
        projected = torch.nn.functional.linear(projected, w_ih, bias)
    if batch_first:
        projected = projected.transpose(0, 1)
    packed = projected.dim() == 2
    steps = projected.split(batch_sizes) if packed else projected.unbind()
    batch_sizes = batch_sizes if packed else [hx.shape[0]] * len(steps)
    outputs, hidden, cell = [None] * len(steps), hx, cx
    order = reversed(range(len(steps))) if reverse else range(len(steps))
    for t in order:
        n = batch_sizes[t]
        h, c = (hidden[:n], cell[:n]) if n < hidden.shape[0] else (hidden, cell)
        i, f, g, o = (steps[t] + h @ w_hh.t()).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs[t] = h
        whole = n == hidden.shape[0]
        hidden = h if whole else torch.cat([h, hidden[n:]])
        cell = c if whole else torch.cat([c, cell[n:]])
    output = torch.cat(outputs) if packed else torch.stack(outputs, 1 if batch_first else 0)
    return output, hidden, cell, hidden.new_zeros(0), hidden.new_zeros(0)


def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    if input_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    ir, iz, new = input_gates.chunk(3, 1)
    hr, hz, hn = hidden_gates.chunk(3, 1)
    reset, update = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    new = (new + reset * hn).tanh()
    return new + update * (hx - new), hx.new_zeros(0)


def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    if input_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    i, f, g, o = (input_gates + hidden_gates).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cell = f * cx + i * g
    return o * cell.tanh(), cell, torch.cat([i, f, g, o], 1)


def _dropout_noise(x, size, keep, scaled):
    kept = (torch.rand(size, dtype=torch.float32) < keep).to(x.dtype)
    return kept / keep if scaled and keep else kept


@functools.cache
def table():
    """{operator: function} for `run_decompositions`."""
    aten = torch.ops.aten
    return {
        aten._lstm_layer.default: _lstm_layer,
        aten._thnn_fused_gru_cell.default: _gru_cell,
        aten._thnn_fused_lstm_cell.default: _lstm_cell,
        aten._dropout_noise.default: _dropout_noise,
    }
