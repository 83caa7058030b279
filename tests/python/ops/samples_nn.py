"""Rows of pooling, normalisation, losses, embedding, padding, attention and recurrent layers."""

import numpy as np
from rows import fixed_rows, given
from samples_reduction import real, whole

F = "nn.functional."


def small(*shape):
    return real(*shape) / np.prod(shape)


def unit(*shape):
    """Values strictly between 0 and 1."""
    return 1 / (1 + np.exp(-small(*shape)))


IMAGE, LINE, VOLUME = real(2, 3, 7, 8), real(2, 3, 9), real(2, 2, 5, 6, 4)
CLASSES, WEIGHT = np.array([1, 0, 3]), given([1.0, 2.0, 3.0, 4.0])
REDUCTIONS = [{"reduction": r} for r in ("mean", "sum", "none")]


def each(args, kwargs):
    return [(args, k) for k in kwargs]


POOL = {
    F + "max_pool1d": [
        ((LINE, 3), {}),
        ((LINE, 2, 1, 1), {"return_indices": True}),
        ((real(3, 9), 3, 2), {"dilation": 2}),
    ],
    F + "max_pool2d": [
        ((IMAGE, 3), {"stride": 2, "padding": 1}),
        ((IMAGE, (2, 3)), {"ceil_mode": True, "return_indices": True}),
        ((real(3, 7, 8), 2), {"dilation": (2, 1)}),
        ((real(0, 3, 7, 8), 2), {}),
    ],
    F + "max_pool3d": [((VOLUME, 2), {}), ((VOLUME, (2, 3, 2), 1, (1, 1, 0)), {"return_indices": True})],
    F + "avg_pool1d": [((LINE, 3), {}), ((LINE, 3, 2, 1, True, False), {})],
    F + "avg_pool2d": [
        ((IMAGE, 3, 2, 1), {"count_include_pad": p, "ceil_mode": c})
        for p in (True, False)
        for c in (True, False)
    ]
    + [((IMAGE, 2), {"divisor_override": 3})],
    F + "avg_pool3d": [((VOLUME, 2), {"padding": 1}), ((VOLUME, (2, 3, 2), 1), {"divisor_override": 5})],
    F + "adaptive_avg_pool1d": [((LINE, 4), {})],
    F + "adaptive_avg_pool2d": [((IMAGE, (3, 5)), {}), ((IMAGE, (None, 2)), {}), ((IMAGE, 1), {})],
    F + "adaptive_avg_pool3d": [((VOLUME, 2), {})],
    F + "adaptive_max_pool1d": [((LINE, 4), {"return_indices": True})],
    F + "adaptive_max_pool2d": [((IMAGE, (3, 5)), {"return_indices": True}), ((IMAGE, (None, 2)), {})],
    F + "adaptive_max_pool3d": [((VOLUME, 2), {})],
}

C3 = [small(3), small(3) + 1]
NORM = {
    F + "batch_norm": [
        ((small(*s), None, None, *C3), {"training": True}) for s in [(5, 3), (4, 3, 5), (2, 3, 4, 5)]
    ],
    "ops.aten._batch_norm_constants": [((C3[1], C3[0], small(3), given(np.ones(3)), 1e-5), {})],
    F + "layer_norm": [
        ((small(2, 3, 40), [40], small(40), small(40)), {}),
        ((small(2, 3, 4), [3, 4]), {"eps": 1e-3}),
        ((small(2, 8), (8,), None, small(8)), {}),
    ],
    F + "group_norm": [((small(2, 6, 5), 3, small(6), small(6)), {}), ((small(2, 6), 2), {})],
    F + "rms_norm": [((small(2, 3, 8), [8], small(8)), {}), ((small(2, 3, 8), [3, 8]), {"eps": 1e-3})],
    F + "instance_norm": [((small(2, 3, 4, 5), None, None, *C3), {})],
}

SCORES, TARGET = small(3, 4), small(3, 4)[::-1]
LOSS = {
    F + "cross_entropy": each((SCORES, CLASSES), REDUCTIONS + [{"weight": WEIGHT, "ignore_index": 0}])
    + each((SCORES, CLASSES), [{"label_smoothing": 0.2, **r} for r in REDUCTIONS])
    + each((SCORES, unit(3, 4)), REDUCTIONS)
    + [((small(2, 4, 3), whole(2, 3, low=0, high=4)), {}), ((small(4), np.array(2)), {})],
    F + "nll_loss": each((SCORES, CLASSES), REDUCTIONS),
    "ops.aten.nll_loss2d": [((small(2, 4, 3, 2), whole(2, 3, 2, low=0, high=4)), {})],
    F + "mse_loss": each((SCORES, TARGET), REDUCTIONS) + [((SCORES, TARGET), {"weight": unit(3, 4)})],
    F + "smooth_l1_loss": each((real(3, 4), TARGET), REDUCTIONS) + [((SCORES, TARGET), {"beta": 0.3})],
    F + "huber_loss": each((real(3, 4), TARGET), REDUCTIONS),
    F + "binary_cross_entropy": each((unit(3, 4), unit(3, 4)), REDUCTIONS),
    F + "binary_cross_entropy_with_logits": each((SCORES, unit(3, 4)), REDUCTIONS)
    + [((SCORES, unit(3, 4)), {"pos_weight": WEIGHT})],
    F + "kl_div": each((SCORES, unit(3, 4)), [*REDUCTIONS, {"reduction": "batchmean"}, {"log_target": True}]),
}

INDEX = np.array([[1, 0, 2], [4, 4, 1]])
OTHER = {
    F + "embedding": [((INDEX, real(5, 3)), {})],
    F + "pad": [
        ((IMAGE, (1, 2, 2, 1)), {"mode": m}) for m in ("constant", "reflect", "replicate", "circular")
    ]
    + [((IMAGE, (1, -2, 2, 1, 0, 1)), {"value": 2.5}), ((IMAGE, (-3, 1)), {})],
    **{
        f"_C._nn.{kind}_pad{n}d": [((x, pad), {}), ((x[0], pad[:1] * (2 * n)), {}), ((x[:0], pad), {})]
        for kind in ("reflection", "replication")
        for n, x, pad in ((1, LINE, (3, 1)), (2, IMAGE, (2, 0, -1, 3)), (3, VOLUME, (1, 2, 3, -2, 1, 1)))
    },
    F + "scaled_dot_product_attention": [
        ((small(2, 5, 4), small(2, 6, 4), small(2, 6, 3)), {}),
        ((small(2, 5, 4), small(2, 5, 4), small(2, 5, 4)), {"is_causal": True, "scale": 0.7}),
        ((small(2, 5, 4), small(2, 6, 4), small(2, 6, 3)), {"attn_mask": real(5, 6) > 0}),
    ],
    "lstm_cell": [
        ((small(2, 3), (small(2, 4), small(2, 4)), small(16, 3), small(16, 4), small(16), small(16)), {})
    ],
    "gru_cell": [((small(2, 3), small(2, 4), small(12, 3), small(12, 4), small(12), small(12)), {})],
    "rnn_tanh_cell": [((small(2, 3), small(2, 4), small(4, 3), small(4, 4)), {})],
    "lstm": [
        (
            (
                small(5, 2, 3),
                [small(2, 2, 4), small(2, 2, 4)],
                [small(16, 3), small(16, 4), small(16), small(16)] * 2,
            )
            + (True, 1, 0.0, True, True, False),
            {},
        )
    ],
}

PADDED = {F + "embedding": [((INDEX, real(5, 3)), {"padding_idx": i}) for i in (1, -1)]}
UNLEARNED = {"gradcheck": "the row of padding has no gradient, whatever the result does"}
ROWS = [*fixed_rows({**POOL, **NORM, **LOSS, **OTHER}), *fixed_rows(PADDED, refused=UNLEARNED)]
