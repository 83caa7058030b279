"""Rows of recurrent networks: as a layer is called, and over packed sequences."""

import numpy as np
from rows import fixed_rows
from samples_nn import small

SIZES = np.array([2, 2, 1])  # two sequences, of 3 and 2 steps, packed into 5


def parameters(gates, directions=1):
    """Of a layer from 3 features to 4."""
    shapes = [(4 * gates, 3), (4 * gates, 4), (4 * gates,), (4 * gates,)] * directions
    return [small(*shape) for shape in shapes]


def layers(gates):
    steps = (small(5, 2, 3), small(2, 2, 4), parameters(gates, 2), True, 1, 0.0, True, True, False)
    packed = (small(5, 3), SIZES, small(1, 2, 4), parameters(gates), True, 1, 0.0, True, False)
    return [(steps, {}), (packed, {})]


CELL = (small(2, 3), small(2, 4), small(4, 3), small(4, 4))
LSTM = (small(5, 3), SIZES, [small(1, 2, 4), small(1, 2, 4)], parameters(4), True, 1, 0.0, True, False)
ROWS = [
    *fixed_rows(
        {
            "gru": layers(3),
            "rnn_tanh": layers(1),
            "rnn_relu": layers(1),
            "rnn_relu_cell": [(CELL, {})],
            "lstm": [(LSTM, {})],
            "_pad_packed_sequence": [((small(5, 3), SIZES, True, 0.5, 4), {})],
        },
        refused={"fuzz": "PyTorch does not check that the steps of packed sequences add up"},
    ),
    *fixed_rows(
        {"_pack_padded_sequence": [((small(2, 3, 2), np.array([3, 2]), True), {})]},
        refused={"device": "lengths stay on the CPU, as in PyTorch"},
    ),
]
