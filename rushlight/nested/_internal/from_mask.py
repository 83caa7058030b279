"""Nested tensors of padded batches: a mask or a table of sizes says which elements are real."""

import rushlight
from rushlight.nested._internal.strided import strided_from_list

__all__ = [
    "_nested_from_padded",
    "_nested_from_padded_and_nested_example",
    "_nested_tensor_from_mask",
    "_nested_tensor_from_mask_left_aligned",
]


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


def _nested_from_padded(padded, cpu_nested_shape_example, fuse_transform_0213=False):
    """Of each row of a padded batch the corner of the sizes that a row of the table gives. With
    fuse_transform_0213 the batch is (N, heads, L, size), and components are (L, heads * size)."""
    if fuse_transform_0213:
        padded = padded.transpose(1, 2).flatten(2)
    sizes = cpu_nested_shape_example.tolist()
    if len(sizes) != len(padded) or any(len(size) != padded.dim() - 1 for size in sizes):
        raise RuntimeError(
            f"_nested_from_padded(): a table of shape {tuple(cpu_nested_shape_example.shape)} does not fit a "
            f"batch of shape {tuple(padded.shape)}"
        )
    if any(n > most for size in sizes for n, most in zip(size, padded.shape[1:], strict=True)):
        raise RuntimeError("_nested_from_padded(): a component is larger than the padded batch")
    return strided_from_list(
        [row[tuple(slice(n) for n in size)] for row, size in zip(padded.unbind(), sizes, strict=True)]
    )


def _nested_from_padded_and_nested_example(padded, nt_example):
    """The same, of the sizes that the components of another nested tensor have."""
    return _nested_from_padded(padded, nt_example._nested_tensor_size())
