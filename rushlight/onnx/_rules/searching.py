"""Searching in sorted rows, and elements of a given rank."""

import rushlight as torch

from .._graph import Value
from ._registry import rule
from .reductions import top_elements


@rule("searchsorted")
def searchsorted(g, ordered, values, *, out_int32=False, right=False, side=None, sorter=None):
    """How many of a row are less than each value, or not greater."""
    if sorter is not None:
        raise NotImplementedError("onnx.export: searchsorted with a sorter; sort the rows first")
    if ordered.dim not in (1, values.dim):
        raise NotImplementedError("onnx.export: searchsorted of rows and values with other dimensions")
    ordered, values = g.promote(ordered, values)
    if ordered.dim > 1:
        ordered = g.op("Unsqueeze", ordered, g.ints([-2]), shape=(*ordered.shape[:-1], 1, ordered.shape[-1]))
    each = g.op("Unsqueeze", values, g.ints([-1]), shape=(*values.shape, 1))
    shape = (*values.shape, ordered.shape[-1])
    compare = "LessOrEqual" if right or side == "right" else "Less"
    below = g.op(compare, ordered, each, dtype=torch.bool, shape=shape)
    count = g.op("ReduceSum", g.cast(below, torch.int64), g.ints([-1]), keepdims=0, shape=values.shape)
    return g.cast(count, torch.int32) if out_int32 else count


@rule("bucketize")
def bucketize(g, values, boundaries, *, out_int32=False, right=False):
    return searchsorted(g, boundaries, values, out_int32=out_int32, right=right)


@rule("isin")
def isin(g, elements, test_elements, *, assume_unique=False, invert=False):
    elements, tested = g.promote(elements, test_elements)
    each = g.op("Unsqueeze", elements, g.ints([-1]), shape=(*elements.shape, 1))
    tested = g.reshape(tested, [-1])
    equal = g.op("Equal", each, tested, dtype=torch.bool, shape=(*elements.shape, *tested.shape))
    count = g.op("ReduceSum", g.cast(equal, torch.int64), g.ints([-1]), keepdims=0, shape=elements.shape)
    return g.op("Equal" if invert else "Greater", count, 0, dtype=torch.bool)


def _of_rank(g, x, rank, dim, keepdim):
    """The element of a rank, a number or scalar value counted from 1, and where it is."""
    dim %= x.dim
    size = g.size(x, dim) if not isinstance(rank, int) else rank
    shape = tuple(n for d, n in enumerate(x.shape) if d != dim)
    if keepdim:
        shape = tuple(1 if d == dim else n for d, n in enumerate(x.shape))
    values, places = top_elements(g, x, size, dim, False, True)
    at = g.op("Sub", g.ints([rank]), 1)
    one = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    taken = [g.op("Gather", part, at, axis=dim, shape=one) for part in (values, places)]
    return tuple(t if keepdim else g.op("Squeeze", t, g.ints([dim]), shape=shape) for t in taken)


@rule("kthvalue")
def kthvalue(g, x, k, dim=-1, keepdim=False):
    return _of_rank(g, x, k, dim, keepdim)


@rule("median")
def median(g, x, dim=None, keepdim=False):
    """The lower of two middle elements; numbers that are none are not looked for."""
    whole = dim is None
    if whole:
        x, dim = g.reshape(x, [-1]), 0
    more = g.op("Add", g.size(x, dim), 1)
    values, places = _of_rank(g, x, g.op("Div", more, 2), dim, keepdim)
    return values if whole else (values, places)


@rule("_unique2")
def unique(g, x, sorted=True, return_inverse=False, return_counts=False):
    names = g.op("Unique", g.reshape(x, [-1]), outputs=4, sorted=1, shape=g.out[0].shape)
    values, _, inverse, counts = names
    inverse, counts = (Value(v.name, torch.int64, t.shape) for v, t in zip((inverse, counts), g.out[1:]))
    return values, g.reshape_as(inverse, x) if return_inverse else None, counts


@rule("torchvision::nms")
def kept_boxes(g, dets, scores, iou_threshold):
    """ONNX numbers the image, the class and the box; there is one of the first two."""
    count = g.size(dets, 0)
    boxes = g.op("Unsqueeze", g.cast(dets, torch.float32), g.ints([0]), shape=(1, *dets.shape))
    scores = g.op("Unsqueeze", g.cast(scores, torch.float32), g.ints([0, 1]), shape=(1, 1, *scores.shape))
    most, threshold = g.reshape(count, [1]), g.constant([float(iou_threshold)], torch.float32)
    found = g.op("NonMaxSuppression", boxes, scores, most, threshold, dtype=torch.int64, shape=(1, 3))
    return g.op("Gather", found, g.constant(2, torch.int64), axis=1, shape=(1,))
