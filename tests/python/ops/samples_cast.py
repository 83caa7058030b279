"""Rows of casts, and of what changes a tensor's shape or elements where it lies."""

import numpy as np
from rows import fixed_rows
from samples_reduction import S, V, X, real

M, C = real(3, 4), real(2, 3) + 1j * real(2, 3)
CASTS = {
    f"Tensor.{name}": [((M,), {}), ((C if name.startswith("c") and name != "char" else M[0],), {})]
    for name in (*("double", "int", "long", "short", "char", "bool", "cdouble"),)
} | {"Tensor.byte": [((np.abs(M),), {})]}
NARROWED = {f"Tensor.{name}": [((M,), {})] for name in ("float", "half", "bfloat16", "cfloat")}
COMPLEX_HALVES = {"Tensor.chalf": [((M,), {})]}
TURNED = {f"Tensor.{name}": [((M,), {}), ((C,), {})] for name in ("mT", "mH")} | {
    "Tensor.H": [((C,), {})],
    "Tensor.T": [((M,), {})],
}
SHAPES = {
    "squeeze_": [((real(3, 1, 4, 1),), {}), ((real(3, 1, 4), 1), {}), ((real(1, 3, 1), (0, 2)), {})],
    "unsqueeze_": [((M, 0), {}), ((S, 0), {})],
    "t_": [((M,), {})],
    "transpose_": [((X, 0, 2), {})],
    "swapaxes_": [((X, 0, 1), {})],
    "swapdims_": [((X, 0, 1), {})],
}
OF_MEMORY = {"as_strided_": [((M, (2, 3), (4, 1)), {})]}
RESIZED = {
    "resize_": [((M, (2, 5)), {}), ((V, (3,)), {})],
    "resize_as_": [((M, real(2, 3)), {})],
}
ELEMENTS = {
    "fill_diagonal_": [((M, 1.5), {}), ((real(7, 3), 2.0, True), {})],
    "zero_": [((M,), {})],
}
BITS = {"Tensor.view": [((M, "dtype:int64"), {}), ((M, "dtype:int8"), {})]}
COARSE = {"gradcheck": "finite differences are lost in the narrower type"}
LYING = {
    "layout": "the strides are arguments, or what is asked for depends on them",
    "vmap": "the examples share one memory",
    "gradcheck": "a tensor that is recorded keeps its memory",
}
ROWS = [
    *fixed_rows({**CASTS, **TURNED}),
    *fixed_rows(NARROWED, refused=COARSE),
    *fixed_rows(COMPLEX_HALVES, refused={**COARSE, "device": "complex32 lives on the CPU"}),
    *fixed_rows({f"Tensor.{name}": calls for name, calls in {**SHAPES, **ELEMENTS}.items()}),
    *fixed_rows({f"Tensor.{name}": calls for name, calls in {**OF_MEMORY, **RESIZED}.items()}, refused=LYING),
    *fixed_rows(BITS, refused={"layout": "needs a viewable layout"}),
    *fixed_rows(
        {"Tensor.is_nonzero": [((S,), {})], "Tensor.item": [((S,), {})]},
        refused={"trace": "its result is a value"},
    ),
]
