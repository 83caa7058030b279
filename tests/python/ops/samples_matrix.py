"""Rows of matrix products, convolutions and normalisations in their lower-level forms."""

import numpy as np
from rows import fixed_rows, given
from samples_reduction import real, whole

F = "nn.functional."
A, B, SQUARE = real(3, 4) / 5, real(4, 2) / 5, real(3, 3) / 5 + 2 * np.eye(3)
BATCH, OTHER = real(2, 3, 4) / 5, real(2, 4, 2) / 5
LINE, IMAGE, VOLUME = real(2, 4, 7) / 9, real(2, 4, 5, 6) / 50, real(1, 2, 4, 5, 3) / 50
SCALED = {"beta": 0.5, "alpha": 2}

MATMUL = {
    "mm": [((A, B), {}), ((A[:0], B), {}), ((A[:, :0], B[:0]), {})],
    "bmm": [((BATCH, OTHER), {}), ((BATCH[:0], OTHER[:0]), {})],
    "mv": [((A, real(4)), {})],
    "dot": [((real(5), real(5)), {})],
    "vdot": [((real(5), real(5)), {})],
    "inner": [((A, real(2, 4)), {}), ((real(4), real(4)), {})],
    "outer": [((real(3), real(4)), {})],
    "ger": [((real(3), real(4)), {})],
    "addmm": [((real(3, 2), A, B), {}), ((real(2), A, B), SCALED)],
    "addmv": [((real(3), A, real(4)), {}), ((real(1), A, real(4)), SCALED)],
    "addr": [((A, real(3), real(4)), {}), ((real(4), real(3), real(4)), SCALED)],
    "addbmm": [((real(3, 2), BATCH, OTHER), {}), ((real(2), BATCH, OTHER), SCALED)],
    "baddbmm": [((real(2, 3, 2), BATCH, OTHER), {}), ((real(2), BATCH, OTHER), SCALED)],
    "block_diag": [((A, B), {})],
    "cartesian_prod": [((real(3), real(2)), {})],
    "det": [((SQUARE,), {})],
    "inverse": [((SQUARE,), {})],
    "logdet": [((SQUARE @ SQUARE.T,), {})],
    "slogdet": [((SQUARE,), {})],
    "tensordot": [((BATCH, OTHER), {"dims": ([2], [1])})],
    "ops.aten._addmm_activation": [((real(4), real(3, 2), real(2, 4)), {})],
    "chain_matmul": [((A, B, B.T), {})],
}
CONV = {
    F + "conv1d": [
        ((LINE, real(6, 4, 3)), {"padding": 1}),
        ((LINE, real(4, 2, 3), real(4), 2), {"groups": 2}),
    ],
    F + "conv2d": [
        ((IMAGE, real(3, 4, 3, 2), real(3)), {"padding": (1, 0), "stride": (2, 1)}),
        ((IMAGE, real(4, 1, 2, 2)), {"groups": 4, "dilation": 2}),
        ((IMAGE, real(2, 4, 3, 3)), {"padding": "same"}),
    ],
    F + "conv3d": [((VOLUME, real(2, 2, 2, 2, 2), real(2)), {"padding": 1})],
    F + "conv_transpose1d": [((LINE, real(4, 3, 3), real(3)), {"stride": 2, "output_padding": 1})],
    F + "conv_transpose2d": [((IMAGE, real(4, 2, 2, 3)), {"groups": 2, "padding": 1})],
    F + "conv_transpose3d": [((VOLUME, real(2, 1, 2, 2, 2)), {"dilation": 2})],
    F + "linear": [((A, real(2, 4), real(2)), {}), ((BATCH, real(2, 4)), {})],
    F + "bilinear": [((A, real(3, 2), real(5, 4, 2), real(5)), {})],
}
OTHERS = {
    F + "l1_loss": [((real(3, 4), real(3, 4) + 0.1), {"reduction": r}) for r in ("none", "mean", "sum")],
    F + "prelu": [((real(2, 3, 2), real(3)), {}), ((A, real(1)), {})],
    F + "normalize": [((A,), {}), ((A, 1.0, 0), {})],
    F + "cosine_similarity": [((A, real(3, 4)), {})],
    F + "pairwise_distance": [((A, real(3, 4)), {})],
    F + "pixel_shuffle": [((real(1, 8, 2, 3), 2), {})],
    F + "pixel_unshuffle": [((real(1, 2, 4, 6), 2), {})],
    F + "channel_shuffle": [((IMAGE, 2), {})],
    F + "unfold": [((IMAGE, (2, 3)), {"padding": 1})],
    F + "local_response_norm": [((IMAGE, 2), {})],
    F + "margin_ranking_loss": [((real(4), real(4) + 0.1, given(np.sign(real(4)))), {})],
    F + "soft_margin_loss": [((real(4), np.sign(real(4))), {})],
    F + "hinge_embedding_loss": [((real(4), np.sign(real(4))), {})],
    F + "poisson_nll_loss": [((real(3, 4) / 9, np.abs(real(3, 4))), {})],
    F + "triplet_margin_loss": [((A, real(3, 4), real(3, 4)), {})],
    F + "multi_margin_loss": [((A, whole(3, low=0, high=4)), {})],
    F + "interpolate": [
        ((IMAGE,), {"scale_factor": 2, "mode": m}) for m in ("nearest", "bilinear", "bicubic", "area")
    ],
}
CHECKED = {F + "gaussian_nll_loss": [((real(3, 4), real(3, 4), np.abs(real(3, 4)) + 1), {})]}
ROWS = [
    *fixed_rows({**MATMUL, **CONV, **OTHERS}),
    *fixed_rows(CHECKED, refused={"trace": "looks at the variances, which must be positive"}),
]
