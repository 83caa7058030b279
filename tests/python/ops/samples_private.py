"""Rows of operators that exported programs and packages name, and no program: composites of public ones."""

import numpy as np
from rows import FLOATS, Row, fixed, fixed_rows, given
from samples_reduction import real

HIDDEN = np.array([[False, True, False], [True, True, False]])
INPUT, CHANNELS = real(4, 3, 5), (real(3), real(3))
STATS = (given(real(3)), given(np.abs(real(3)) + 0.5))
COLUMNS = np.array([1, 9, -7, 0])
VALID = np.array([True, False, False, True])
WEIGHTS = (real(12, 4) / 4, real(12) / 4, real(4, 4) / 4, real(4) / 4)
LAYER = (real(4), real(4), real(4), real(4), real(8, 4) / 4, real(8) / 4, real(4, 8) / 4, real(4) / 4)
SOURCE = real(2, 3, 4)
KEYS = np.array([[False, False, True], [False, True, True]])
SQUARE = np.triu(np.ones((3, 3), dtype=bool), 1)

TABLE = {
    "_masked_softmax": [
        ((real(2, 3), HIDDEN), {}),
        ((real(2, 3), HIDDEN, 1, 2), {}),
        ((real(2, 2, 3, 3), KEYS, 3, 1), {}),
        ((real(2, 2, 3, 3), SQUARE, 3, 0), {}),
    ],
    "_unsafe_masked_index": [((real(3, 5), VALID, [None, COLUMNS], 7.0), {})],
    "_unsafe_masked_index_put_accumulate": [((real(3, 5), VALID, [None, COLUMNS], real(3, 4)), {})],
    "ops.aten.native_dropout_backward": [((real(2, 3), HIDDEN, 2.0), {})],
    "_add_relu": [((real(2, 3), real(2, 3)), {}), ((real(2, 3), real(3)), {"alpha": -2})],
    "_transform_bias_rescale_qkv": [((real(2, 3, 12), real(12), 2), {})],
}
NORMS = {
    "_weight_norm": [((real(3, 4), real(3, 1)), {}), ((real(3, 4), real(1, 4), 1), {})],
    "_weight_norm_interface": [((real(3, 4), real(3, 1)), {})],
}
LAYERS = {
    "_native_multi_head_attention": [
        ((SOURCE, SOURCE, SOURCE, 4, 2, *WEIGHTS), {}),
        ((SOURCE, SOURCE, SOURCE, 4, 2, *WEIGHTS, KEYS, True, False, 1), {}),
        ((SOURCE, SOURCE, SOURCE, 4, 2, *WEIGHTS, SQUARE, True, True, 0), {}),
    ],
    "_transformer_encoder_layer_fwd": [
        ((SOURCE, 4, 2, *WEIGHTS, gelu, first, 1e-5, *LAYER), {})
        for gelu in (False, True)
        for first in (False, True)
    ],
}
UNUSED = {"vmap": "statistics that were not computed are empty, and the same for all examples"}
ROWS = [
    *fixed_rows(TABLE),
    *fixed_rows(LAYERS),
    *fixed_rows(NORMS, refused={"gradients": "PyTorch leaves out that the norm depends on the weight"}),
    Row("_safe_softmax", fixed([((np.array([[1.0, -np.inf], [2.0, 3.0]]), 1), {}), ((real(2, 3), 0), {})])),
    Row(
        "_chunk_cat",
        fixed([(([real(3, 2), real(4, 3)], 0, 2), {}), (([real(2, 3, 2), real(2, 4)], 1, 3), {})]),
        FLOATS,
    ),
    Row("_efficientzerotensor", fixed([(([2, 3],), {})])),
    Row(
        "_native_batch_norm_legit",
        fixed(
            [
                ((INPUT, *CHANNELS, *STATS, False, 0.1, 1e-5), {}),
                ((INPUT, *CHANNELS, True, 0.1, 1e-5), {}),
            ]
        ),
        refused=UNUSED,
    ),
    Row(
        "_native_batch_norm_legit_no_training",
        fixed([((INPUT, *CHANNELS, *STATS, 0.1, 1e-5), {})]),
        refused=UNUSED,
    ),
    Row(
        "ops.aten._batch_norm_with_update",
        fixed([((INPUT, *CHANNELS, *STATS, 0.1, 1e-5), {})]),
        refused={"vmap": "running statistics are written to, and not batched"},
    ),
]
