"""Rows of products of whole numbers, and of weights that are kept in eight bits."""

import numpy as np
from rows import Row, Sample, fixed
from samples_reduction import real, whole

WEIGHT = whole(6, 16).astype(np.int8)

MISREAD = "PyTorch reads some layouts as if they were contiguous"

ROWS = [
    Row(
        "_convert_weight_to_int4pack_for_cpu",
        lambda make: [Sample((np.abs(make(32, 64, low=0, high=15)), 2))],
        ("int32",),
        refused=dict.fromkeys(("values", "fuzz"), "each library packs as its own products read"),
    ),
    Row(
        "_int_mm",
        lambda make: [Sample((make(20, 8), make(8, 16))), Sample((make(17, 3), make(3, 5)))],
        ("int8",),
        refused={"fuzz": MISREAD},
    ),
    Row(
        "_weight_int8pack_mm",
        fixed([((real(3, 16) / 9, WEIGHT, np.abs(real(6)) / 9), {})]),
        ("bfloat16",),
        refused={"layout": "rows must be contiguous, in PyTorch too", "fuzz": MISREAD},
    ),
]
