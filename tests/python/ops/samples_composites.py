"""Rows of composites: losses, distances, normalisations, windows, integrals and derivatives of samples."""

import numpy as np
from rows import Row, Sample

F = "nn.functional."
SIGNS, BITS = np.array([1, -1, 1, -1]), np.array([0.0, 1.0, 1.0, 0.0])
SHARES = np.array([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])
LABELS = np.array([[1, 3, -1, 0], [2, -1, 0, 0]])
NUMBERS, NAMES = (0, 1, 2), ("none", "mean", "sum")
BY_NUMBER, BY_NAME = [{"reduction": r} for r in NUMBERS], [{"reduction": r} for r in NAMES]

COUNTED = dict.fromkeys(("gradcheck", "gradients"), "what is counted does not move with the elements")
MADE = dict.fromkeys(("gradcheck", "gradients", "vmap", "layout"), "no operands")


def row(name, shapes, *rest, words=({},), **options):
    """Tensors of these shapes, what follows them as it is, and one call for each of the keywords."""

    def samples(make):
        return [Sample((*(make(*shape) for shape in shapes), *rest), w) for w in words]

    return Row(name, samples, **options)


LOSSES = [
    row("hinge_embedding_loss", [(4,)], SIGNS, words=BY_NUMBER),
    row("cosine_embedding_loss", [(4, 3), (4, 3)], SIGNS, words=BY_NUMBER),
    row("margin_ranking_loss", [(4,), (4,)], SIGNS, 0.3, words=BY_NUMBER),
    row(
        "triplet_margin_loss",
        [(4, 3)] * 3,
        words=[{"swap": s, "reduction": r} for s in (False, True) for r in NUMBERS],
    ),
    row("kl_div", [(2, 3)], SHARES, words=BY_NUMBER),
    row("poisson_nll_loss", [(4,)], 2 * BITS + 2, True, True, 1e-8, words=BY_NUMBER),
    row("binary_cross_entropy_with_logits", [(4,)], BITS, words=BY_NUMBER),
    row(F + "cosine_embedding_loss", [(3,), (3,)], np.array(1), words=BY_NAME),
    row(F + "kl_div", [(2, 3)], np.log(SHARES), words=[{"log_target": True, "reduction": "batchmean"}]),
    row(F + "multilabel_soft_margin_loss", [(2, 4)], np.stack([BITS, 1 - BITS]), words=BY_NAME),
    row(F + "multilabel_margin_loss", [(2, 4)], LABELS, words=BY_NAME),
    row(F + "multi_margin_loss", [(3, 4)], np.array([0, 3, 1]), words=[{"p": 1}, {"p": 2}]),
]
LAYERS = [
    row("cosine_similarity", [(3, 4), (3, 4)], words=[{"dim": 0}, {"dim": -1}]),
    row("pairwise_distance", [(3, 4), (4,)], words=[{"p": 1.0}, {"keepdim": True}]),
    row("bilinear", [(2, 3), (2, 4), (5, 3, 4), (5,)]),
    row("conv_tbc", [(5, 2, 3), (3, 3, 4), (4,)], words=[{}, {"pad": 1}], rtol=1e-5, atol=1e-5),
    row("norm_except_dim", [(3, 4, 2)], words=[{"dim": d} for d in (0, 1, -1)]),
    row("instance_norm", [(2, 3, 4), (3,), (3,)], None, None, True, 0.1, 1e-5, True, rtol=1e-4, atol=1e-5),
    row(
        F + "local_response_norm",
        [(2, 5, 4)],
        words=[{"size": 3}],
        refused={"gradgradcheck": "too slow by differences"},
    ),
    row(F + "lp_pool1d", [(2, 3, 6)], 2, words=[{"kernel_size": 2}], domain=(0.2, 3.0)),
    row(F + "lp_pool2d", [(1, 2, 6, 5)], 3, words=[{"kernel_size": (2, 3), "stride": 2}], domain=(0.2, 3.0)),
]
SAMPLED = [
    row("trapezoid", [(3, 4)], words=[{}, {"dx": 0.5, "dim": 0}]),
    row("trapz", [(3, 4), (4,)]),
    row("cumulative_trapezoid", [(3, 4), (3, 4)], words=[{}, {"dim": 0}]),
    row(
        "gradient",
        [(4, 5)],
        words=[{}, {"spacing": 0.5, "edge_order": 2}, {"spacing": [2.0, 3.0], "dim": (1, 0)}],
    ),
    row("histogram", [(9,)], 4, words=[{}, {"range": (-1.0, 1.0), "density": True}], refused=COUNTED),
    row(
        "hash_tensor",
        [(3, 4)],
        words=[{}, {"dim": 1, "keepdim": True}],
        dtypes=("float32", "int64"),
        refused=COUNTED,
    ),
    *(
        row(name, [], 7, *rest, dtypes=("float32",), refused=MADE, atol=1e-6)
        for name, rest in [
            ("bartlett_window", ()),
            ("blackman_window", (False,)),
            ("hann_window", (True,)),
            ("hamming_window", (False, 0.6, 0.3)),
            ("kaiser_window", (True, 9.0)),
        ]
    ),
]
ROWS = [*LOSSES, *LAYERS, *SAMPLED]
