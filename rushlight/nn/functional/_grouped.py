"""Products of groups of matrices, and of matrices that carry scales."""

from enum import Enum

import rushlight

__all__ = ["ScalingType", "SwizzleType", "grouped_mm", "scaled_grouped_mm", "scaled_mm"]


class ScalingType(Enum):
    """For how many elements one scale stands."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(Enum):
    """In which order scales lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


_BLOCKS = {
    ScalingType.BlockWise1x16: (1, 16),
    ScalingType.BlockWise1x32: (1, 32),
    ScalingType.BlockWise1x128: (1, 128),
    ScalingType.BlockWise128x128: (128, 128),
}


def _groups(offs, length):
    """The ranges that end at `offs`; an empty one where it does not grow."""
    ends = offs.tolist()
    starts = [0, *ends[:-1]]
    if any(not 0 <= start <= end <= length for start, end in zip(starts, ends)):
        raise RuntimeError(f"grouped_mm: offs must grow from 0 to at most {length}, but got {ends}")
    return list(zip(starts, ends))


def _check_grouped(mat_a, mat_b, offs):
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise RuntimeError(
            f"grouped_mm: expected matrices of 2 or 3 dimensions, got {mat_a.shape}, {mat_b.shape}"
        )
    both_batched = mat_a.dim() == 3 and mat_b.dim() == 3
    if both_batched == (offs is not None):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, and only then")
    if offs is not None and (offs.dim() != 1 or offs.dtype != rushlight.int32):
        raise RuntimeError(
            f"Offsets have to be a vector of int32, but got {offs.dtype} of shape {offs.shape}"
        )
    inner_a, inner_b = mat_a.size(-1), mat_b.size(-2)
    if inner_a != inner_b:
        raise RuntimeError(
            f"contraction dimension of mat_a and mat_b must match, but got {inner_a}, {inner_b}"
        )


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """One product for each group of rows, columns or inner elements.

    Args:
        mat_a, mat_b: two matrices, whose inner dimension is split into groups and which give a batch of
            products; a matrix and a batch, whose rows (or columns) are split; or two batches.
        offs: where each group ends, int32; not for two batches.
    """
    _check_grouped(mat_a, mat_b, offs)
    if bias is not None:
        raise RuntimeError("grouped_mm: bias is not supported yet")
    if mat_a.dim() == 3 and mat_b.dim() == 3:
        result = rushlight.bmm(mat_a, mat_b)
    elif mat_a.dim() == 2 and mat_b.dim() == 2:
        parts = [mat_a[:, i:j] @ mat_b[i:j] for i, j in _groups(offs, mat_a.size(1))]
        result = rushlight.stack(parts)
    else:
        rows = mat_a.dim() == 2
        matrix, batch = (mat_a, mat_b) if rows else (mat_b, mat_a)
        dim = 0 if rows else 1
        ranges = _groups(offs, matrix.size(dim))
        if len(ranges) != batch.size(0):
            raise RuntimeError(f"grouped_mm: {len(ranges)} groups for a batch of {batch.size(0)} matrices")
        parts = [
            matrix[i:j] @ batch[g] if rows else batch[g] @ matrix[:, i:j] for g, (i, j) in enumerate(ranges)
        ]
        rest = list(parts[0].shape)
        rest[dim] = matrix.size(dim) - ranges[-1][1]
        result = rushlight.cat([*parts, parts[0].new_zeros(rest)], dim)
    return result if out_dtype is None else result.to(out_dtype)


# --- scaled products: the operands times their scales, in float32


def _one(value, what):
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(values) != 1:
        raise NotImplementedError(f"scaled_mm: two levels of {what} are not supported, got {len(values)}")
    return values[0]


def _scaled(matrix, scale, recipe, swizzle, rows_first):
    """The matrix in float32; `rows_first` says that scales go with its rows, else with its columns."""
    scale, recipe = _one(scale, "scales"), _one(recipe, "recipes")
    if swizzle is not None and _one(swizzle, "swizzles") is not SwizzleType.NO_SWIZZLE:
        raise NotImplementedError("scaled_mm: scales in swizzled order are not supported")
    wide, scale = matrix.float(), scale.float()
    if recipe is ScalingType.TensorWise:
        if scale.numel() != 1:
            raise ValueError(f"scaled_mm: TensorWise takes one scale, but got shape {scale.shape}")
        return wide * scale.reshape(())
    lines = wide if rows_first else wide.mT
    if recipe is ScalingType.RowWise:
        result = lines * scale.reshape(*lines.shape[:-1], 1)
    else:
        height, width = _BLOCKS[recipe]
        counts = [-(-lines.size(-2) // height), -(-lines.size(-1) // width)]
        if scale.shape[-2:] != tuple(counts):
            scale = scale.mT
        if scale.shape[-2:] != tuple(counts):
            raise ValueError(f"scaled_mm: {recipe.name} takes scales of shape {counts}, got {scale.shape}")
        each = scale.repeat_interleave(height, -2).repeat_interleave(width, -1)
        result = lines * each[..., : lines.size(-2), : lines.size(-1)]
    return result if rows_first else result.mT


def scaled_mm(
    mat_a,
    mat_b,
    scale_a,
    scale_recipe_a,
    scale_b,
    scale_recipe_b,
    swizzle_a=None,
    swizzle_b=None,
    bias=None,
    output_dtype=rushlight.bfloat16,
    contraction_dim=(),
    use_fast_accum=False,
):
    """``(mat_a * scale_a) @ (mat_b * scale_b) + bias``, for operands of narrow types with scales."""
    if mat_a.dim() != 2 or mat_b.dim() != 2:
        raise RuntimeError(f"scaled_mm: expected two matrices, got {mat_a.shape} and {mat_b.shape}")
    left = _scaled(mat_a, scale_a, scale_recipe_a, swizzle_a, True)
    right = _scaled(mat_b, scale_b, scale_recipe_b, swizzle_b, False)
    result = left @ right
    if bias is not None:
        result = result + bias.float()
    return result.to(output_dtype or mat_a.dtype)


def scaled_grouped_mm(
    mat_a,
    mat_b,
    scale_a,
    scale_recipe_a,
    scale_b,
    scale_recipe_b,
    swizzle_a=None,
    swizzle_b=None,
    bias=None,
    offs=None,
    output_dtype=rushlight.bfloat16,
    contraction_dim=(),
    use_fast_accum=False,
):
    """`grouped_mm` of operands that carry scales."""
    left = _scaled(mat_a, scale_a, scale_recipe_a, swizzle_a, True)
    right = _scaled(mat_b, scale_b, scale_recipe_b, swizzle_b, False)
    return grouped_mm(left, right, offs=offs, bias=bias, out_dtype=output_dtype or mat_a.dtype)
