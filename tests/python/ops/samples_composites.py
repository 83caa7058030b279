"""Rows of composites: losses, distances, normalisations, windows, integrals and derivatives of samples."""

import numpy as np
from rows import Row, Sample, fixed_rows

F = "nn.functional."
SIGNS, BITS = np.array([1, -1, 1, -1]), np.array([0.0, 1.0, 1.0, 0.0])
SHARES = np.array([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])
LABELS = np.array([[1, 3, -1, 0], [2, -1, 0, 0]])
NUMBERS, NAMES = (0, 1, 2), ("none", "mean", "sum")
BY_NUMBER, BY_NAME = [{"reduction": r} for r in NUMBERS], [{"reduction": r} for r in NAMES]

COUNTED = dict.fromkeys(("gradcheck", "gradients", "fuzz"), "what is counted does not move with the elements")
NARROW = {"fuzz": "halves are refused here"}
WRAPS = {"unsigned": "differences of unsigned numbers wrap around"}
MADE = dict.fromkeys(("gradcheck", "gradients", "vmap", "layout"), "no operands")


def row(name, shapes, *rest, words=({},), **options):
    """Tensors of these shapes, what follows them as it is, and one call for each of the keywords."""

    def samples(make):
        return [Sample((*(make(*shape) for shape in shapes), *rest), w) for w in words]

    return Row(name, samples, **options)


LOSSES = [
    row("hinge_embedding_loss", [(4,)], SIGNS, words=BY_NUMBER),
    row("cosine_embedding_loss", [(4, 3), (4, 3)], SIGNS, words=BY_NUMBER),
    row("margin_ranking_loss", [(4,), (4,)], SIGNS, 0.3, words=BY_NUMBER, refused=WRAPS),
    row(
        "triplet_margin_loss",
        [(4, 3)] * 3,
        words=[{"swap": s, "reduction": r} for s in (False, True) for r in NUMBERS],
        refused=WRAPS,
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
    row("pairwise_distance", [(3, 4), (4,)], words=[{"p": 1.0}, {"keepdim": True}], refused=WRAPS),
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
    row(F + "lp_pool3d", [(1, 2, 4, 4, 4)], 2, words=[{"kernel_size": 2}], domain=(0.2, 3.0)),
    row(F + "lp_pool2d", [(1, 2, 6, 5)], 3, words=[{"kernel_size": (2, 3), "stride": 2}], domain=(0.2, 3.0)),
]
SAMPLED = [
    row("trapezoid", [(3, 4)], words=[{}, {"dx": 0.5, "dim": 0}]),
    row("trapz", [(3, 4), (4,)], refused=WRAPS),
    row("cumulative_trapezoid", [(3, 4), (3, 4)], words=[{}, {"dim": 0}], refused=WRAPS),
    row(
        "gradient",
        [(4, 5)],
        words=[{}, {"spacing": 0.5, "edge_order": 2}, {"spacing": [2.0, 3.0], "dim": (1, 0)}],
        refused=WRAPS,
    ),
    row("histogram", [(9,)], 4, words=[{}, {"range": (-1.0, 1.0), "density": True}], refused=NARROW),
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
# What other functions are made of.
INNER = dict.fromkeys(
    (
        "layout",
        "method",
        "inplace",
        "out",
        "vmap",
        "gradcheck",
        "gradients",
        "trace",
        "meta",
        "unsigned",
        "fuzz",
    ),
    "a part of another function",
)
IMAGE, CHANNELS = np.linspace(-1, 1, 24).reshape(2, 3, 4), np.array([0.5, 1.0, 1.5])
ONE, INDICES = np.array([1.0]), np.array([0, 1, 1, 2])
PARTS = {
    "_amp_update_scale_": [((ONE, np.array([3], "int32"), 0 * ONE, 2.0, 0.5, 2000), {})],
    "_cast_Long": [((IMAGE,), {})],
    "_convert_indices_from_coo_to_csr": [((INDICES, 3), {})],
    "_convert_indices_from_csr_to_coo": [((np.array([0, 1, 3]), np.array([0, 0, 1])), {})],
    "_histogramdd_bin_edges": [((IMAGE[0], [2, 2, 2, 2]), {})],
    "_histogramdd_from_bin_cts": [((IMAGE[0], [2, 2, 2, 2]), {})],
    "_histogramdd_from_bin_tensors": [((IMAGE[0], [np.array([-1.0, 0.0, 1.0])] * 4), {})],
    "_shape_as_tensor": [((IMAGE,), {})],
    "batch_norm_stats": [((IMAGE, 1e-5), {})],
    "batch_norm_elemt": [((IMAGE, CHANNELS, CHANNELS, CHANNELS, CHANNELS, 1e-5), {})],
    "batch_norm_update_stats": [((IMAGE, CHANNELS, CHANNELS, 0.1), {})],
    "slice_inverse": [((IMAGE[0], IMAGE[1], 0, 0, 3), {})],
    "view_as_real_copy": [((np.array([1 + 2j, 3 - 1j]),), {})],
    "view_as_complex_copy": [((IMAGE[0, :, :2],), {})],
}
STARTS, PLACES = np.array([0, 2, 2, 3]), np.array([0, 2, 1])
CHECKS = {
    "_assert_async": [((ONE,), {}), ((ONE, "message"), {})],
    "_validate_compressed_sparse_indices": [((True, STARTS, PLACES, 3, 4, 3), {})],
    "_linalg_check_errors": [((np.zeros(2, np.int32), "linalg.inv"), {"is_matrix": False})],
}
SILENT = {**INNER, "values": "it gives nothing"}
ROWS = [*LOSSES, *LAYERS, *SAMPLED, *fixed_rows(PARTS, refused=INNER), *fixed_rows(CHECKS, refused=SILENT)]
