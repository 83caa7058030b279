"""Facts about shapes and strides that packages ask for under this path."""

import rushlight

__all__ = [
    "check_all_strides",
    "check_significant_strides",
    "compare_tensor_meta",
    "make_contiguous_strides_for",
    "suggest_memory_format",
]


def make_contiguous_strides_for(shape, row_major=True):
    """Strides of a dense tensor of this shape; the last two axes swapped where columns come first."""
    shape = tuple(shape)
    reverse, step = [], 1
    for length in reversed(shape):
        reverse.append(step)
        step *= max(length, 1) if isinstance(length, int) else length
    strides = tuple(reversed(reverse))
    if row_major or len(shape) < 2:
        return strides
    return (*strides[:-2], 1, max(shape[-2], 1))


def suggest_memory_format(x):
    """The order of axes that results of this tensor have: channels last where it is so, and not also
    plain."""
    if x.layout != rushlight.strided:
        return rushlight.contiguous_format
    # With one channel, or one pixel, both orders have the same elements in the same places: strides decide.
    if x.dim() in (4, 5):
        last = rushlight.channels_last if x.dim() == 4 else rushlight.channels_last_3d
        if (
            x.is_contiguous(memory_format=last)
            and x.stride(1) == 1
            and x.stride() != tuple(make_contiguous_strides_for(x.shape))
        ):
            return last
    return rushlight.contiguous_format


def _strides_agree(a, b, only_cuda, significant_only):
    """(whether the strides are equal, the first dimension where not): where several elements lie along it."""
    counted = not only_cuda or "cuda" in (a.device.type, b.device.type)
    if counted and a.numel() > 0:
        for dim, (left, right) in enumerate(zip(a.stride(), b.stride(), strict=True)):
            if left != right and not (significant_only and a.shape[dim] <= 1):
                return False, dim
    return True, None


def check_significant_strides(a, b, *, only_cuda=True):
    return _strides_agree(a, b, only_cuda, True)


def check_all_strides(a, b, *, only_cuda=True):
    return _strides_agree(a, b, only_cuda, False)


def compare_tensor_meta(a, b, check_sizes=True, check_strides=False, *, check_conj=True):
    """Raise where two tensors differ in shape, dtype or device, and in strides if these are to be equal."""
    from rushlight._subclasses.fake_tensor import MetadataMismatchError

    facts = [("Dtypes", a.dtype, b.dtype), ("Devices", a.device, b.device)]
    if check_sizes:
        facts.insert(0, ("Shapes", a.shape, b.shape))
    for what, left, right in facts:
        if left != right:
            raise MetadataMismatchError(f"{what} {left} and {right} are not equal!")
    if check_strides:
        same, dim = check_significant_strides(a, b, only_cuda=False)
        if not same:
            raise MetadataMismatchError(
                f"Stride mismatch! Strides are {a.stride()} and {b.stride()} (mismatched at {dim})!"
            )
        if a.storage_offset() != b.storage_offset():
            raise MetadataMismatchError(
                f"Storage offset mismatch! Storage offsets are {a.storage_offset()} and {b.storage_offset()}!"
            )
    if check_conj and a.is_conj() != b.is_conj():
        raise MetadataMismatchError(f"Conj mismatch! is_conj is set to {a.is_conj()} and {b.is_conj()}")
    if a.is_neg() != b.is_neg():
        raise MetadataMismatchError(f"Neg mismatch! is_neg is set to {a.is_neg()} and {b.is_neg()}")
