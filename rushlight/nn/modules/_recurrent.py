"""Recurrent layers as loops over time, for when the core has no kernel of its own.

The functions have the signatures of `torch.lstm`, `torch.gru`, `torch.rnn_tanh` and `torch.rnn_relu`, with
both overloads: (input, hx, params, …, batch_first) and, for packed sequences,
(data, batch_sizes, hx, params, …).
"""

import rushlight as torch
from rushlight.nn import functional as F


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an LSTM: (h, c) after input of (batch, features)."""
    return _lstm_step(F.linear(input, w_ih, b_ih), hx, w_hh, b_hh, None)


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a GRU."""
    return _gru_step(F.linear(input, w_ih, b_ih), (hx,), w_hh, b_hh, None)[0]


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a plain recurrent layer with tanh."""
    return torch.tanh(F.linear(input, w_ih, b_ih) + F.linear(hx, w_hh, b_hh))


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a plain recurrent layer with ReLU."""
    return torch.relu(F.linear(input, w_ih, b_ih) + F.linear(hx, w_hh, b_hh))


def _lstm_step(projected, state, w_hh, b_hh, w_hr):
    h, c = state
    i, f, g, o = (projected + F.linear(h, w_hh, b_hh)).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return (h if w_hr is None else F.linear(h, w_hr)), c


def _gru_step(projected, state, w_hh, b_hh, w_hr):
    (h,) = state
    xr, xz, xn = projected.chunk(3, 1)
    hr, hz, hn = F.linear(h, w_hh, b_hh).chunk(3, 1)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = (xn + r * hn).tanh()
    return ((h - n) * z + n,)


def _tanh_step(projected, state, w_hh, b_hh, w_hr):
    return (torch.tanh(projected + F.linear(state[0], w_hh, b_hh)),)


def _relu_step(projected, state, w_hh, b_hh, w_hr):
    return (torch.relu(projected + F.linear(state[0], w_hh, b_hh)),)


def _run_direction(step, steps, state, weights, reverse):
    """Visit the steps in order; sequences that end (or begin) on the way leave (or join) the batch."""
    w_hh, b_hh, w_hr = weights
    outputs = [None] * len(steps)
    first = len(steps) - 1 if reverse else 0
    size = steps[first].size(0)
    current = tuple(s[:size] for s in state)
    ended = []
    for t in reversed(range(len(steps))) if reverse else range(len(steps)):
        wanted = steps[t].size(0)
        if wanted < size:
            ended.append(tuple(s[wanted:] for s in current))
            current = tuple(s[:wanted] for s in current)
        elif wanted > size:
            current = tuple(torch.cat([c, s[size:wanted]]) for c, s in zip(current, state))
        size = wanted
        current = step(steps[t], current, w_hh, b_hh, w_hr)
        outputs[t] = current[0]
    final = tuple(torch.cat(parts) for parts in zip(current, *reversed(ended)))
    return outputs, final


def _run_layers(
    step, data, batch_sizes, state, params, has_biases, num_layers, dropout, train, bidirectional
):
    """All layers over packed data; the final state of each layer and direction is stacked."""
    directions = 2 if bidirectional else 1
    per_cell = len(params) // (num_layers * directions)
    finals = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            w_ih, w_hh, *rest = params[k * per_cell : (k + 1) * per_cell]
            b_ih, b_hh = rest[:2] if has_biases else (None, None)
            w_hr = rest[-1] if per_cell in (3, 5) else None
            # One matrix product projects the input of all steps.
            steps = F.linear(data, w_ih, b_ih).split(batch_sizes)
            outs, final = _run_direction(
                step, steps, [s[k] for s in state], (w_hh, b_hh, w_hr), direction == 1
            )
            outputs.append(torch.cat(outs))
            finals.append(final)
        data = outputs[0] if directions == 1 else torch.cat(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            data = F.dropout(data, dropout, True)
    return (data, *(torch.stack(s) for s in zip(*finals)))


def _recurrent(step, args):
    """Tell the two overloads apart, and bring the first into the form of the second."""
    packed = not isinstance(args[3], bool)  # has_biases stands fourth, or params
    if packed:
        data, batch_sizes, hx, params, *options = args
        state = (hx,) if isinstance(hx, torch.Tensor) else tuple(hx)
        return _run_layers(step, data, batch_sizes.tolist(), state, params, *options)
    input, hx, params, *options, batch_first = args
    state = (hx,) if isinstance(hx, torch.Tensor) else tuple(hx)
    if batch_first:
        input = input.transpose(0, 1)
    steps, batch = input.shape[:2]
    out, *finals = _run_layers(
        step, input.reshape(steps * batch, -1), [batch] * steps, state, params, *options
    )
    out = out.view(steps, batch, -1)
    return (out.transpose(0, 1) if batch_first else out, *finals)


def lstm(*args):
    """Output, final h and final c of a stack of LSTM layers."""
    return _recurrent(_lstm_step, args)


def gru(*args):
    """Output and final h of a stack of GRU layers."""
    return _recurrent(_gru_step, args)


def rnn_tanh(*args):
    """Output and final h of a stack of plain recurrent layers with tanh."""
    return _recurrent(_tanh_step, args)


def rnn_relu(*args):
    """Output and final h of a stack of plain recurrent layers with ReLU."""
    return _recurrent(_relu_step, args)
