"""Nested tensors of padded batches whose mask says which elements are real."""

import rushlight
from rushlight.nested._internal.strided import strided_from_list

__all__ = ["_nested_tensor_from_mask", "_nested_tensor_from_mask_left_aligned"]


def _check(t, mask):
    if mask.dtype is not rushlight.bool:
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {mask.dtype} instead.")
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.dim() != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if t.shape[:2] != mask.shape:
        raise RuntimeError("Mask size should match input size")


def _aligned(mask):
    lengths = mask.sum(1)
    return rushlight.equal(mask, rushlight.arange(mask.shape[1], device=mask.device) < lengths[:, None])


def _nested_tensor_from_mask(t, mask, mask_check=True):
    """Of each row of `t` (N, L, D) as many elements as the row of `mask` (N, L) has that are true."""
    _check(t, mask)
    if mask_check and not _aligned(mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    return strided_from_list([row[:n] for row, n in zip(t.unbind(), mask.sum(1).tolist(), strict=True)])


def _nested_tensor_from_mask_left_aligned(t, mask):
    """Whether the real elements of each row come first."""
    _check(t, mask)
    return _aligned(mask)
