"""Rows of resampling, of pools that are undone or drawn, and of bags of rows of a table."""

import numpy as np
from rows import fixed_rows, given
from samples_reduction import real

F, C = "nn.functional.", "_C._nn."
LINE, IMAGE, VOLUME = real(2, 3, 5), real(2, 3, 4, 5) / 9, real(1, 2, 3, 4, 5) / 9
ALIGN = {"linear": (False,), "bilinear": (True,), "bicubic": (False,), "trilinear": (True,)}
SHAPES = {1: (LINE, (8,)), 2: (IMAGE, (6, 3)), 3: (VOLUME, (5, 2, 7))}
KINDS = [
    *((f"{kind}{n}d", n, ()) for kind in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)),
    ("upsample_linear1d", 1, (False,)),
    ("upsample_bilinear2d", 2, (True,)),
    ("upsample_bicubic2d", 2, (False,)),
    ("upsample_trilinear3d", 3, (True,)),
    *((f"_upsample_{kind}2d_aa", 2, (False,)) for kind in ("bilinear", "bicubic", "lanczos")),
]
RESIZED = {"ops.aten._upsample": [((IMAGE, (6, 3), 2, False, (1.5, 0.6)), {})]} | {
    C + name: [((SHAPES[n][0], SHAPES[n][1], *align), {})] for name, n, align in KINDS
}

GRID2, GRID3 = np.tanh(real(2, 3, 2, 2) / 9), np.tanh(real(1, 2, 3, 2, 3) / 18)
SAMPLED = {
    "grid_sampler": [((IMAGE, GRID2, mode, padding, True), {}) for mode in (0, 2) for padding in (0, 1)],
    "grid_sampler_2d": [((IMAGE, GRID2, 0, 2, False), {})],
    "grid_sampler_3d": [((VOLUME, GRID3, 0, 0, False), {})],
    "affine_grid_generator": [
        ((real(2, 2, 3), (2, 3, 4, 5), True), {}),
        ((real(1, 3, 4), (1, 2, 3, 4, 5), False), {}),
    ],
}
# Where the largest of each window of two stood.
PLACES2 = np.array([[[[0, 3], [11, 14]]] * 3] * 2)
PLACES3 = np.array([[[[[0, 3], [11, 14]]]] * 2])
POOLS = {
    "adaptive_max_pool1d": [((LINE, 3), {})],
    F + "max_unpool2d": [((real(2, 3, 2, 2), PLACES2, 2), {})],
    F + "max_unpool3d": [((real(1, 2, 1, 2, 2), PLACES3, 2), {})],
    C + "fractional_max_pool2d": [((IMAGE, (2, 2), (2, 3), given(np.full((2, 3, 2), 0.4))), {})],
    C + "fractional_max_pool3d": [((VOLUME, (2, 2, 2), (2, 2, 3), given(np.full((1, 2, 3), 0.4))), {})],
}
TABLE, ROWS_OF_TABLE, STARTS = real(6, 3), np.array([1, 0, 5, 2, 2, 3, 4]), np.array([0, 3, 3, 5])
BAGS = {
    "embedding_bag": [((TABLE, ROWS_OF_TABLE, STARTS, False, mode), {}) for mode in (0, 1, 2)]
    + [((TABLE, ROWS_OF_TABLE, STARTS, False, 0, False, real(7), False, 2), {})],
    "_embedding_bag": [((TABLE, ROWS_OF_TABLE, STARTS, False, 1), {})],
}
BAG_CALLS = [((ROWS_OF_TABLE, TABLE, STARTS), {"mode": mode}) for mode in ("sum", "mean", "max")] + [
    ((ROWS_OF_TABLE, TABLE, STARTS), {"mode": "sum", "per_sample_weights": real(7), "padding_idx": 2})
]
FORWARD_ONLY = {"_embedding_bag_forward_only": [((TABLE, ROWS_OF_TABLE, STARTS), {})]}
RENORM = {"embedding_renorm_": [((TABLE, np.array([0, 1, 4]), 1.0, 2.0), {})]}
SCORES = np.log(np.exp(S := real(6, 2, 4) / 9) / np.exp(S).sum(-1, keepdims=True))
LABELS = np.array([[1, 2, 2], [3, 1, 0]])
LENGTHS = {
    "ctc_loss": [((SCORES, LABELS, (6, 5), (3, 2), 0, reduction), {}) for reduction in (0, 1, 2)]
    + [((SCORES, LABELS, np.array([6, 5]), np.array([3, 2]), 0, 2), {})],
    "_ctc_loss": [((SCORES, LABELS, (6, 5), (3, 2)), {})],
    "ops.aten._ctc_loss": [((SCORES, LABELS, np.array([6, 5]), np.array([3, 2])), {})],
}
ALONG = {
    "gradcheck": "the gradient is that along scores that stay normalised",
    "meta": "the lengths are read",
}
UNSET = dict.fromkeys(
    ("values", "layout", "vmap", "trace", "unsigned", "fuzz"),
    "what lies behind a sequence's end is left as it was found",
)
KEPT = {
    "values": "the further results are working memory, which is kept where a gradient needs it",
    "fuzz": "likewise",
}
WRITTEN = {"gradcheck": "the table's rows are written to without a history"}
ROWS = [
    *fixed_rows({**RESIZED, **SAMPLED, **POOLS}),
    *fixed_rows(BAGS, refused=KEPT),
    *fixed_rows({"nn.functional.embedding_bag": BAG_CALLS}),
    *fixed_rows(FORWARD_ONLY, refused={**KEPT, "gradcheck": "as its name says"}),
    *fixed_rows(
        RENORM,
        refused={
            **WRITTEN,
            "fuzz": "complex tables are refused here",
            "vmap": "the table is not mapped where the rows are",
        },
    ),
    *fixed_rows({"ctc_loss": LENGTHS.pop("ctc_loss")}, refused=ALONG),
    *fixed_rows(LENGTHS, refused={**ALONG, **UNSET}),
]
