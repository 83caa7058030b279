"""Rows of what is drawn: for equal seeds the numbers are PyTorch's."""

import numpy as np
from rows import FLOATS, HALVES, Row, Sample, fixed_rows, given

SIZES = ((3, 4), (20,), (0, 3))
LAID = dict.fromkeys(("layout", "out"), "numbers are drawn in the order of memory")
ALWAYS = {**LAID, "gradcheck": "what is drawn has no derivative"}
BYTES = {"unsigned": "unsigned numbers past eight bits are not drawn, in PyTorch either"}
DROPPED = {**LAID, "vmap": "every example is dropped by its own numbers"}
UNDEFINED = dict.fromkeys(
    ("values", "layout", "method", "vmap", "trace", "out", "unsigned", "fuzz"), "memory as it was found"
)


def filled(name, *args, dtypes=FLOATS + HALVES, refused=None):
    return Row(
        f"Tensor.{name}",
        lambda make: [Sample((make(*size), *args)) for size in SIZES],
        dtypes,
        refused={**ALWAYS, **(refused or {})},
    )


FILLS = [
    filled("uniform_", -2.0, 3.0),
    filled("normal_", 1.0, 2.0),
    filled("log_normal_"),
    filled("cauchy_"),
    filled("exponential_", 1.5, refused={"fuzz": "PyTorch lets whole numbers pass where there are none"}),
    filled("geometric_", 0.3),
    filled("bernoulli_", 0.3),
    Row(
        "Tensor.bernoulli_",
        lambda make: [Sample((make(3, 4), make(3, 4, low=0.0, high=1.0)))],
        refused=ALWAYS,
    ),
    filled("random_", dtypes=(*FLOATS, "int64", "uint8"), refused=BYTES),
    filled("random_", 100, dtypes=(*FLOATS, "int64"), refused=BYTES),
    Row(
        "Tensor.random_",
        lambda make: [Sample((make(3, 4), -5, 50))],
        (*FLOATS, "int64"),
        refused={**ALWAYS, **BYTES, "trace": "`from` is no name in generated code, in PyTorch's neither"},
    ),
]
X, P = np.arange(12.0).reshape(3, 4) - 5, np.linspace(0, 1, 12).reshape(3, 4)
FACTORIES = {
    "rand": [((3, 4), {}), (((20,),), {"dtype": "dtype:float64"})],
    "randn": [((3, 4), {}), (((20,),), {"dtype": "dtype:float64"})],
    "randint": [((10, (3, 4)), {}), ((-5, 5, (20,)), {"dtype": "dtype:int32"})],
    "randperm": [((20,), {}), ((0,), {})],
    "normal": [((1.0, 2.0, (3, 4)), {}), ((X, 2.0), {}), ((1.0, P), {}), ((X, P), {})],
    "rand_like": [((X,), {}), ((X,), {"dtype": "dtype:float32"})],
    "randn_like": [((X,), {})],
    "randint_like": [((X, 10), {}), ((X, -5, 5), {"dtype": "dtype:int64"})],
}
DRAWS = {
    "bernoulli": [((P,), {}), ((P, 0.4), {})],
    "poisson": [((P * 20,), {})],
    "binomial": [((np.full((3, 4), 20.0), P), {})],
    "_standard_gamma": [((P + 0.2,), {})],
    "_sample_dirichlet": [((P + 0.2,), {})],
    "multinomial": [((P + 0.1, 3), {}), ((P[0] + 0.1, 8, True), {})],
}
DROPS = {
    name: [((X, 0.4, True), {}), ((X, 0.4, False), {})]
    for name in ("dropout", "native_dropout", "dropout_", "alpha_dropout", "alpha_dropout_")
} | {
    name: [((np.arange(48.0).reshape(2, 3, 8) + 1, 0.4, True), {})]
    for name in ("feature_dropout", "feature_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_")
}
del DROPS["native_dropout"][1]
SLOPES = {
    "rrelu": [((X + 0.3, 0.1, 0.4, True), {}), ((X + 0.3,), {})],
    "rrelu_": [((X + 0.3, 0.1, 0.4, True), {})],
    "nn.functional.rrelu": [((X + 0.3, 0.1, 0.4, True), {})],
}
EMPTY = {
    "empty": [((3, 4), {}), (((2, 0),), {"dtype": "dtype:int32"})],
    "empty_strided": [(((3, 4), (1, 3)), {})],
    "empty_permuted": [(((2, 3, 4), (2, 0, 1)), {})],
    "empty_like": [((X,), {}), ((X.T,), {"dtype": "dtype:int8"})],
    "Tensor.new_empty": [((X, (2, 3)), {})],
    "Tensor.new_empty_strided": [((X, (2, 3), (1, 2)), {})],
}
EXPANDED = {"fuzz": "PyTorch's expansion has four digits, and other values where there is no derivative"}
# Of how the distributions' gradients depend on what was drawn.
GRADIENTS = {
    "ops.aten._dirichlet_grad": [((P / 4 + 0.05, given(P + 0.2), given(P + 2)), {})],
}
ROWS = [
    *FILLS,
    *fixed_rows(FACTORIES, refused=ALWAYS),
    *fixed_rows(DRAWS, refused=ALWAYS),
    *fixed_rows(DROPS, refused=DROPPED),
    *fixed_rows(SLOPES, refused=DROPPED),
    *fixed_rows(EMPTY, refused={**UNDEFINED, **ALWAYS}),
    *fixed_rows(GRADIENTS),
    # PyTorch's expansion has four digits.
    *fixed_rows({"ops.aten._standard_gamma_grad": [((P + 0.2, P + 0.5), {})]}, rtol=2e-4, refused=EXPANDED),
]
