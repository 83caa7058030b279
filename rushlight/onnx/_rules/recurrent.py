"""Recurrent layers and cells."""

import rushlight as torch

from ._registry import RULES, rule


def _gates(g, x, bias, count):
    """The gates that lie side by side in the last dimension."""
    if bias is not None:
        x = g.op("Add", x, bias)
    size = x.shape[-1] // count
    return g.op("Split", x, g.ints([size] * count), outputs=count, axis=-1, shape=(*x.shape[:-1], size))


@rule("_thnn_fused_gru_cell")
def gru_cell(g, input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    x_reset, x_update, x_new = _gates(g, input_gates, input_bias, 3)
    h_reset, h_update, h_new = _gates(g, hidden_gates, hidden_bias, 3)
    reset = g.op("Sigmoid", g.op("Add", x_reset, h_reset))
    update = g.op("Sigmoid", g.op("Add", x_update, h_update))
    new = g.op("Tanh", g.op("Add", x_new, g.op("Mul", reset, h_new)))
    return g.op("Add", g.op("Mul", g.op("Sub", hx, new), update), new), None


@rule("_thnn_fused_lstm_cell")
def lstm_cell(g, input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    both = zip(_gates(g, input_gates, input_bias, 4), _gates(g, hidden_gates, hidden_bias, 4), strict=True)
    enter, forget, new, leave = (g.op("Add", x, h) for x, h in both)
    kept = g.op("Mul", g.op("Sigmoid", forget), cx)
    cell = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", enter), g.op("Tanh", new)))
    return g.op("Mul", g.op("Sigmoid", leave), g.op("Tanh", cell)), cell, None


@rule("_lstm_layer")
def lstm_layer(g, projected, hx, cx, w_hh, batch_sizes, reverse, batch_first, keep, w_ih=None, bias=None):
    """The input is projected already, so the weight of ONNX's LSTM only puts the gates into its order."""
    if batch_sizes:
        raise NotImplementedError("onnx.export: LSTMs of packed sequences")
    if w_ih is not None:
        shape = (*projected.shape[:-1], w_ih.shape[0])
        projected = g.op("MatMul", projected, g.op("Transpose", w_ih, perm=[1, 0]), shape=shape)
        projected = projected if bias is None else g.op("Add", projected, bias)
    hidden = w_hh.shape[1]
    blocks = torch.arange(4 * hidden).reshape(4, hidden)
    order = blocks[[0, 3, 1, 2]].reshape(-1)  # ONNX's gates: input, output, forget, cell
    weight = g.constant(torch.eye(4 * hidden)[order].unsqueeze(0), projected.dtype)
    recurrent = g.op("Gather", w_hh, g.constant(order), axis=0)
    axis = g.ints([0])
    recurrent, hx, cx = (g.op("Unsqueeze", v, axis, shape=(1, *v.shape)) for v in (recurrent, hx, cx))
    steps = g.op("Transpose", projected, perm=[1, 0, 2]) if batch_first else projected
    direction = "reverse" if reverse else "forward"
    inputs = (steps, weight, recurrent, None, None, hx, cx)
    y, h, c = g.op("LSTM", *inputs, outputs=3, hidden_size=hidden, direction=direction)
    y = g.op("Squeeze", y, g.ints([1]), shape=g.out[0].shape)
    y = g.op("Transpose", y, perm=[1, 0, 2]) if batch_first else y
    h, c = (g.op("Squeeze", v, axis, shape=g.out[1].shape) for v in (h, c))
    return y, h, c, None, None


def _layers(kind, order, activation=None):
    """Layers that take all steps: ONNX's operator, which has the gates in another order."""

    def translate(g, x, hx, params, biases, layers, dropout, train, bidirectional, batch_first):
        if train and dropout and layers > 1:
            raise NotImplementedError("onnx.export: recurrent layers with dropout in between; call eval()")
        directions, hidden = 2 if bidirectional else 1, hx.shape[-1]
        each = 4 if biases else 2
        places = torch.arange(len(order) * hidden).reshape(-1, hidden)[list(order)].reshape(-1)
        places = g.constant(places)
        y = g.op("Transpose", x, perm=[1, 0, 2]) if batch_first else x
        last = []
        for layer in range(layers):
            at = layer * directions
            own = [params[each * (at + d) : each * (at + d + 1)] for d in range(directions)]
            own = [[g.op("Gather", v, places) for v in p] for p in own]
            w, r = (_of_directions(g, [p[i] for p in own]) for i in (0, 1))
            b = _of_directions(g, [g.op("Concat", *p[2:], axis=0) for p in own]) if biases else None
            ends = [g.ints([n]) for n in (at, at + directions, 0)]
            start = g.op("Slice", hx, *ends, shape=(directions, *hx.shape[1:]))
            how = {"hidden_size": hidden, "direction": "bidirectional" if bidirectional else "forward"}
            if kind == "RNN":
                how["activations"] = [activation] * directions
            else:
                how["linear_before_reset"] = 1
            y, h = g.op(kind, y, w, r, b, None, start, outputs=2, **how)
            y = g.op("Transpose", y, perm=[0, 2, 1, 3], shape=(*x.shape[:2], directions, hidden))
            sizes = g.ints([0, 0, directions * hidden])
            y = g.op("Reshape", y, sizes, shape=(*x.shape[:2], directions * hidden))
            last.append(h)
        h = g.op("Concat", *last, axis=0, shape=g.out[1].shape) if layers > 1 else last[0]
        return (g.op("Transpose", y, perm=[1, 0, 2]) if batch_first else y), h

    return translate


def _of_directions(g, values):
    rows = [g.op("Unsqueeze", v, g.ints([0]), shape=(1, *v.shape)) for v in values]
    return g.op("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]


RULES["gru.input"] = _layers("GRU", (1, 0, 2))
RULES["rnn_tanh.input"] = _layers("RNN", (0,), "Tanh")
RULES["rnn_relu.input"] = _layers("RNN", (0,), "Relu")
