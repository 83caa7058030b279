"""Rows for the activation functions; see samples_pointwise."""

from samples_pointwise import Row

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
ACTIVATION = [Row("nn.functional." + n, integers=False, inplace=False) for n in FLAGGED]
ACTIVATION += [
    Row("nn.functional." + n, integers=False, inplace=False, extra=e, kwargs=k)
    for n, e, k in [
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
        ("glu", (), {}),
        ("softsign", (), {}),
        ("tanhshrink", (), {}),
        ("sigmoid", (), {}),
        ("tanh", (), {}),
    ]
]
