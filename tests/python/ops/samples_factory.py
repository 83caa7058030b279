"""Rows of what makes tensors from numbers: name -> list of (args, kwargs). Values are exact or defined."""

import numpy as np
from rows import fixed_rows
from samples_reduction import S, real, whole

M, C = real(3, 4), real(2, 2) + 1j * real(2, 2)

ROWS = fixed_rows(
    {
        "arange": [((5,), {}), ((1, 9, 2), {}), ((0.5, 2.5, 0.25), {}), ((5, -3, -2), {}), ((0,), {})],
        "range": [((1, 9, 2), {}), ((0.5, 2.5, 0.25), {})],
        "linspace": [
            ((-1, 1, 5), {}),
            ((0, 1, 1), {}),
            ((0, 10, 0), {}),
            ((1, 7, 4), {"dtype": "dtype:int64"}),
        ],
        "logspace": [((0, 2, 5), {}), ((0, 3, 4, 2.0), {})],
        "eye": [((3,), {}), ((2, 4), {}), ((0,), {})],
        "full": [(((2, 3), 1.5), {}), (((), 7), {}), (((2,), True), {})],
        "ones": [((2, 3), {}), (((0, 2),), {"dtype": "dtype:int32"})],
        "zeros": [((2, 3), {}), (((),), {"dtype": "dtype:bool"})],
        "ones_like": [((M,), {}), ((whole(2),), {"dtype": "dtype:float32"})],
        "zeros_like": [((M,), {}), ((C,), {})],
        "full_like": [((M, 2), {}), ((whole(2), 3), {})],
        "Tensor.new_zeros": [((M, (2, 2)), {})],
        "Tensor.new_ones": [((M, (2, 2)), {"dtype": "dtype:int8"})],
        "Tensor.new_full": [((M, (2, 2), 3.5), {})],
        "tril_indices": [((3, 4), {}), ((3, 3, 1), {})],
        "triu_indices": [((3, 4), {}), ((3, 3, -1), {})],
        "scalar_tensor": [((2.5,), {})],
        "complex": [((M, real(3, 4)), {})],
        "polar": [((np.abs(M), real(3, 4)), {})],
        "angle": [((C,), {}), ((M,), {})],
        "isclose": [((M, M + 1e-9), {}), ((M, -M), {"equal_nan": True})],
        "allclose": [((M, M + 1e-9), {}), ((M, -M), {})],
        "equal": [((M, M), {}), ((M, real(2)), {})],
        "frexp": [((M,), {})],
        "fft.fftfreq": [((5,), {}), ((4, 0.5), {})],
        "fft.rfftfreq": [((5,), {})],
        "bartlett_window": [((5,), {})],
        "blackman_window": [((5,), {})],
        "hamming_window": [((5,), {})],
        "hann_window": [((5,), {"periodic": False})],
        "kaiser_window": [((5,), {})],
        "meshgrid": [((real(2), real(3)), {"indexing": "ij"})],
        "broadcast_tensors": [((real(2, 1), real(3)), {})],
        "atleast_2d": [((S,), {}), ((real(3),), {})],
        "atleast_3d": [((S,), {}), ((M,), {})],
        "trapezoid": [((M,), {}), ((M, real(4)), {"dim": 1})],
        "cumulative_trapezoid": [((M,), {})],
        "unique": [((whole(9, low=0, high=4),), {}), ((whole(9, low=0, high=4), True, True, True), {})],
        "unique_consecutive": [((np.array([1, 1, 2, 2, 1]),), {"return_counts": True})],
        "norm": [((M,), {}), ((M, 1, 0), {})],
        "linalg.vecdot": [((M, real(3, 4)), {})],
    }
)
