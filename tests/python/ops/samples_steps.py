"""Rows of the optimizers' steps and of scaled gradients: what is written is the first list."""

import numpy as np
from rows import fixed_rows
from samples_reduction import real

SHAPES = ((3,), (2, 2))


def states():
    return [real(*shape) / 9 for shape in SHAPES]


def squares():
    return [np.abs(state) for state in states()]


def steps():
    return [np.array(3.0, np.float32), np.array(3.0, np.float32)]


RATES = {"lr": 0.1, "weight_decay": 0.01, "maximize": False}
SGD = {**RATES, "momentum": 0.9, "dampening": 0.1, "nesterov": False, "is_first_step": False}
ADAM = {**RATES, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "amsgrad": True}
WRITES = dict.fromkeys(
    ("vmap", "gradcheck", "gradients", "forward", "layout", "trace", "meta", "fuzz"),
    "an optimizer's step writes to several lists, and records nothing",
)
ROWS = fixed_rows(
    {
        "_fused_sgd_": [((states(), states(), states()), SGD)],
        "_fused_adam_": [((states(), states(), states(), squares(), squares(), steps()), ADAM)],
        "_fused_adamw_": [((states(), states(), states(), squares(), squares(), steps()), ADAM)],
        "_amp_foreach_non_finite_check_and_unscale_": [((states(), np.zeros(1), np.array([0.5])), {})],
    },
    dtypes=("float32",),
    refused=WRITES,
)
