"""Operators of the core ATen set that are written in others here: tables leave them whole."""

import rushlight as torch

aten = torch.ops.aten  # type: ignore[attr-defined]

CORE_COMPOSITES = frozenset(
    [
        aten._native_batch_norm_legit.no_stats,
        aten._native_batch_norm_legit_no_training.default,
        aten.eq.Scalar,
        aten.ge.Scalar,
        aten.gt.Scalar,
        aten.index_put.default,
        aten.le.Scalar,
        aten.lt.Scalar,
        aten.native_dropout.default,
        aten.ne.Scalar,
        aten.pow.Tensor_Scalar,
        aten.select_scatter.default,
        aten.slice_scatter.default,
        aten.sym_numel.default,
        aten.sym_size.int,
        aten.upsample_bilinear2d.vec,
        aten.upsample_nearest2d.vec,
        aten.var.dim,
    ]
)
