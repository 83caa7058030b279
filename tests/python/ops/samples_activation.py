"""Rows of the activation functions."""

from rows import FLOATS, HALVES, pointwise

FLAGGED = [
    "relu",
    "relu6",
    "leaky_relu",
    "elu",
    "selu",
    "celu",
    "silu",
    "mish",
    "hardtanh",
    "hardsigmoid",
    "hardswish",
]
PLAIN = [
    *[(name, (), {}) for name in FLAGGED if name != "hardtanh"],
    ("leaky_relu", (0.2,), {}),
    ("elu", (1.5,), {}),
    ("celu", (1.5,), {}),
    ("gelu", (), {}),
    ("gelu", (), {"approximate": "tanh"}),
    ("softplus", (), {}),
    ("softplus", (2, 1), {}),
    ("hardtanh", (-0.5, 1.5), {}),
    ("threshold", (0.3, 7.0), {}),
    ("softshrink", (), {}),
    ("hardshrink", (0.7,), {}),
    ("logsigmoid", (), {}),
    ("softsign", (), {}),
    ("tanhshrink", (), {}),
    ("sigmoid", (), {}),
    ("tanh", (), {}),
]
HALVED = [[(3, 4)], [(4,)], [(2, 0, 4)]]  # what glu cuts into two
ROWS = [
    *[
        pointwise(f"nn.functional.{name}", extra=extra, kwargs=kwargs, dtypes=FLOATS + HALVES)
        for name, extra, kwargs in PLAIN
    ],
    pointwise(
        "nn.functional.hardtanh",
        dtypes=FLOATS + HALVES,
        refused={"unsigned": "an unsigned type has no negative limits"},
    ),
    *[
        pointwise(f"nn.functional.{name}_", dtypes=FLOATS + HALVES)
        for name in ("relu", "leaky_relu", "elu", "selu", "celu")
    ],
    pointwise("nn.functional.hardtanh_", extra=(-0.5, 1.5), dtypes=FLOATS + HALVES),
    pointwise("nn.functional.threshold_", extra=(0.3, 7.0), dtypes=FLOATS + HALVES),
    pointwise("nn.functional.glu", shapes=HALVED, dtypes=FLOATS + HALVES),
]
