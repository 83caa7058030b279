"""Where the components of strided nested tensors lie in their flat buffer.

Places are `None` for components that fill the buffer one after the other; otherwise a pair of lists, the
strides of each component and the element that it starts at."""

import itertools

import rushlight

__all__ = ["packed_starts", "packed_strides", "pieces", "settled"]


def packed_strides(size):
    """The strides of a component whose elements lie without gaps."""
    strides = [1]
    for n in reversed(size[1:]):
        strides.insert(0, strides[0] * n)
    return tuple(strides[: len(size)])


def packed_starts(sizes):
    """Where components start that lie one after the other."""
    counts = [rushlight.Size(size).numel() for size in sizes]
    return [0, *itertools.accumulate(counts)][: len(counts)]


def settled(buffer, sizes, strides, starts):
    """Places in their one form: `None` where they say that the components fill the buffer."""
    strides, starts = [tuple(s) for s in strides], list(starts)
    if strides == [packed_strides(size) for size in sizes] and starts == packed_starts(sizes):
        if buffer.numel() == sum(rushlight.Size(size).numel() for size in sizes):
            return None
    return strides, starts


def pieces(buffer, sizes, places):
    """The components, as views of the buffer."""
    if places is None:
        parts = buffer.split([rushlight.Size(size).numel() for size in sizes])
        return tuple(part.view(size) for part, size in zip(parts, sizes, strict=True))
    strides, starts = places
    spans = [_span(*each) for each in zip(sizes, strides, strict=True)]
    ends = [start + n for start, n in zip(starts, spans, strict=True)]
    if any(start < end for start, end in zip(starts[1:], ends, strict=False)):  # they overlap
        base = buffer.storage_offset()
        each = zip(sizes, strides, starts, strict=True)
        return tuple(buffer.as_strided(size, stride, base + start) for size, stride, start in each)
    # One cut of the buffer: the gradient of each component has its own size, not the buffer's.
    gaps = [start - end for start, end in zip(starts, [0, *ends[:-1]], strict=True)]
    cuts = [n for each in zip(gaps, spans, strict=True) for n in each]
    parts = buffer.split([*cuts, buffer.numel() - sum(cuts)])[1::2]
    each = zip(parts, sizes, strides, strict=True)
    return tuple(part.as_strided(size, stride) for part, size, stride in each)


def _span(size, strides):
    if 0 in size:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(size, strides, strict=True))
