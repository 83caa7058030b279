"""Facts about shapes and strides that packages ask for under this path."""

import rushlight

__all__ = ["make_contiguous_strides_for", "suggest_memory_format"]


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
