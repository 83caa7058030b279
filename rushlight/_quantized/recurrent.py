"""Recurrent layers with integer weights: operands get their scale at each product, states are numbers."""

import rushlight as torch
from rushlight._quantized.packed import CellParams, LinearPackedParams, ScriptObject, held

__all__ = [
    "make_quantized_cell_params_dynamic",
    "make_quantized_cell_params_fp16",
    "quantized_gru",
    "quantized_gru_cell_dynamic",
    "quantized_lstm",
    "quantized_lstm_cell_dynamic",
    "quantized_rnn_relu_cell_dynamic",
    "quantized_rnn_tanh_cell_dynamic",
]
__capture__ = "through"  # Note [Capture marks]


def make_quantized_cell_params_dynamic(w_ih, w_hh, bias_ih, bias_hh, reduce_range=False):
    return ScriptObject(
        CellParams("quantized_dynamic", [bias_ih, bias_hh], [int(reduce_range)], [w_ih, w_hh])
    )


def make_quantized_cell_params_fp16(w_ih, w_hh):
    return ScriptObject(CellParams("quantized_fp16", [], [], [w_ih, w_hh]))


class _Products:
    """The two products of a step, by packed weights."""

    def __init__(self, w_ih, w_hh, reduce_range):
        self.reduce_range = reduce_range
        self.weights = [held(w, LinearPackedParams, "recurrent layer") for w in (w_ih, w_hh)]

    @classmethod
    def of(cls, params):
        cell = held(params, CellParams, "recurrent layer")
        w_ih, w_hh = cell.packed
        return cls(w_ih, w_hh, bool(cell.longs and cell.longs[0]))

    def product(self, which, x):
        w = self.weights[which]
        if w.settings is None:
            return torch.nn.functional.linear(x, w.halved, w.bias())
        s = w.settings
        return torch.ops.aten._quantized_linear_dynamic(
            x, s.integers, s.scales, s.zero_points, w.bias(), False, self.reduce_range
        )

    def of_inputs(self, x):
        return self.product(0, x)

    def of_state(self, h):
        return self.product(1, h)


# One step: (what the input gave, the state, the products) -> the new state; its first part is the result.


def _lstm_step(from_input, state, products):
    h, c = state
    gates = products.of_state(h) + from_input
    into, forget, cell, out = gates.chunk(4, 1)
    c = forget.sigmoid() * c + into.sigmoid() * cell.tanh()
    return out.sigmoid() * c.tanh(), c


def _gru_step(from_input, state, products):
    (h,) = state
    reset_in, update_in, new_in = from_input.chunk(3, 1)
    reset_h, update_h, new_h = products.of_state(h).chunk(3, 1)
    reset, update = (reset_h + reset_in).sigmoid(), (update_h + update_in).sigmoid()
    new = (new_in + new_h * reset).tanh()
    return ((h - new) * update + new,)


def _plain_step(function):
    def step(from_input, state, products):
        return (function(products.of_state(state[0]) + from_input),)

    return step


def _cell(step, parts):
    def cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        products = _Products(w_ih, w_hh, True)
        state = tuple(hx) if parts > 1 else (hx,)
        made = step(products.of_inputs(input), state, products)
        return made if parts > 1 else made[0]

    return cell


quantized_lstm_cell_dynamic = _cell(_lstm_step, 2)
quantized_gru_cell_dynamic = _cell(_gru_step, 1)
quantized_rnn_tanh_cell_dynamic = _cell(_plain_step(torch.tanh), 1)
quantized_rnn_relu_cell_dynamic = _cell(_plain_step(torch.relu), 1)


def _direction(step, x, state, products, backwards):
    """One direction over a sequence (time first)."""
    given = products.of_inputs(x).unbind(0)
    results = []
    for one in reversed(given) if backwards else given:
        state = step(one, state, products)
        results.append(state[0])
    return torch.stack(results[::-1] if backwards else results), state


def _packed_direction(step, data, sizes, state, products, backwards):
    """Likewise, where `sizes` says how many examples still run at each time."""
    given = products.of_inputs(data).split(sizes)
    results: list = [None] * len(sizes)
    if backwards:
        first, state = state, tuple(part[: sizes[-1]] for part in state)
        for t in reversed(range(len(sizes))):
            more = sizes[t] - state[0].shape[0]
            if more:  # examples that end here begin here
                state = tuple(
                    torch.cat([part, begin[sizes[t] - more : sizes[t]]]) for part, begin in zip(state, first)
                )
            state = step(given[t], state, products)
            results[t] = state[0]
        return torch.cat(results), state
    ended: list = []
    for t, size in enumerate(sizes):
        if size < state[0].shape[0]:
            ended.append(tuple(part[size:] for part in state))
            state = tuple(part[:size] for part in state)
        state = step(given[t], state, products)
        results[t] = state[0]
    last = (state, *reversed(ended))
    return torch.cat(results), tuple(torch.cat(parts) for parts in zip(*last))


def _layers(step, direction, x, states, params, num_layers, dropout, train, bidirectional):
    """All layers: the results, and the last states, which stand in one tensor for each part."""
    count = 2 if bidirectional else 1
    if len(params) != num_layers * count:
        raise RuntimeError(
            f"a recurrent layer of {num_layers} layers in {count} directions needs {num_layers * count} "
            f"packed parameters, got {len(params)}"
        )
    last: list = []
    for layer in range(num_layers):
        results = []
        for way in range(count):
            at = layer * count + way
            result, state = direction(
                step, x, tuple(part[at] for part in states), _Products.of(params[at]), bool(way)
            )
            results.append(result)
            last.append(state)
        x = torch.cat(results, -1) if bidirectional else results[0]
        if dropout and train and layer + 1 < num_layers:
            x = torch.dropout(x, dropout, True)
    return (x, *(torch.stack(parts) for parts in zip(*last)))


def _over_sequence(step, input, states, params, layers, dropout, train, bidirectional, batch_first):
    x = input.transpose(0, 1) if batch_first else input
    result, *last = _layers(step, _direction, x, states, params, layers, dropout, train, bidirectional)
    return (result.transpose(0, 1) if batch_first else result, *last)


def _over_packed(step, data, batch_sizes, states, params, layers, dropout, train, bidirectional):
    sizes = batch_sizes.tolist()

    def direction(step, x, state, products, backwards):
        return _packed_direction(step, x, sizes, state, products, backwards)

    return tuple(_layers(step, direction, data, states, params, layers, dropout, train, bidirectional))


def quantized_lstm(input, *arguments, dtype=None, use_dynamic=False):
    """The results and the last states of an LSTM whose weights are integers.

    Args:
        input: the sequence, or the data of a packed one.
        arguments: the sizes of a packed sequence, then (h, c), packed parameters, whether there are biases,
            the number of layers, dropout, whether it trains, whether it runs in both directions, and, but for
            packed sequences, whether examples come first.
        dtype: of the weights; the packed parameters know it.
        use_dynamic: whether operands get their scale at each product: always so.
    """
    if isinstance(arguments[0], torch.Tensor):
        sizes, states, params, _, *more = arguments
        return _over_packed(_lstm_step, input, sizes, states, params, *more)
    states, params, _, *more = arguments
    return _over_sequence(_lstm_step, input, states, params, *more)


def quantized_gru(input, *arguments):
    """Likewise, of a GRU, whose state is one tensor."""
    if isinstance(arguments[1], torch.Tensor):
        sizes, state, params, _, *more = arguments
        return _over_packed(_gru_step, input, sizes, (state,), params, *more)
    state, params, _, *more = arguments
    return _over_sequence(_gru_step, input, (state,), params, *more)
