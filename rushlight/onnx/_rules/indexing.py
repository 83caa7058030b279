"""Operators that take and put elements by index."""

import rushlight as torch

from .._graph import Value
from ._registry import RULES, rule


@rule("index_select")
def index_select(g, x, dim, index):
    return g.op("Gather", x, index, axis=dim % x.dim, shape=g.out.shape)


@rule("embedding")
def embedding(g, weight, indices, *_, **__):
    return g.op("Gather", weight, indices, axis=0, shape=g.out.shape)


@rule("_embedding_bag")
def embedding_bag(
    g,
    weight,
    indices,
    offsets,
    by_frequency=False,
    mode=0,
    sparse=False,
    factors=None,
    last=False,
    padding=-1,
):
    """By a table of which index lies in which bag, of the weight's dtype: its product adds up the rows."""
    indices, offsets = g.cast(indices, torch.int64), g.cast(offsets, torch.int64)
    bags, count = offsets.shape[0] - bool(last), indices.shape[0]
    if last:
        offsets = g.op("Slice", offsets, g.ints([0]), g.ints([-1]), shape=(bags,))
    begins = g.op("Unsqueeze", offsets, g.ints([1]), shape=(bags, 1))
    later = g.op("Slice", offsets, g.ints([1]), g.ints([2**63 - 1]), shape=(bags - 1,))
    later = g.op("Concat", later, g.ints([g.size(indices, 0)]), axis=0, shape=(bags,))
    ends = g.op("Unsqueeze", later, g.ints([1]), shape=(bags, 1))
    at = g.op("Range", 0, g.size(indices, 0), 1, dtype=torch.int64, shape=(count,))
    after = g.op("GreaterOrEqual", at, begins, dtype=torch.bool, shape=(bags, count))
    before = g.op("Less", at, ends, dtype=torch.bool, shape=(bags, count))
    inside = g.op("And", after, before)
    if padding >= 0:
        present = g.op("Not", g.op("Equal", indices, padding, dtype=torch.bool))
        inside = g.op("And", inside, present)
    rows = g.op("Gather", weight, indices, axis=0, shape=(count, weight.shape[1]))
    shape = (bags, weight.shape[1])
    if mode == 2:
        return _largest_of_bags(g, rows, inside, shape), None, None, None
    if factors is not None:
        rows = g.op("Mul", rows, g.op("Unsqueeze", factors, g.ints([1]), shape=(count, 1)))
    inside = g.cast(inside, weight.dtype)
    total = g.op("MatMul", inside, rows, shape=shape)
    if mode == 1:
        sizes = g.op("ReduceSum", inside, g.ints([1]), keepdims=1, shape=(bags, 1))
        total = g.op("Div", total, g.op("Max", sizes, 1.0))
    return total, None, None, None


def _largest_of_bags(g, rows, inside, shape):
    each = g.op("Unsqueeze", inside, g.ints([2]), shape=(*inside.shape, 1))
    spread = (*inside.shape, shape[1])
    held = g.op("Where", each, rows, g.constant(-float("inf"), rows.dtype), dtype=rows.dtype, shape=spread)
    most = g.op("ReduceMax", held, g.ints([1]), keepdims=0, shape=shape)
    empty = g.op("IsInf", most, dtype=torch.bool, detect_positive=0)
    return g.op("Where", empty, g.constant(0.0, rows.dtype), most, dtype=rows.dtype, shape=shape)


@rule("gather")
def gather(g, x, dim, index, *, sparse_grad=False):
    return g.op("GatherElements", x, index, axis=dim % x.dim, shape=index.shape)


@rule("take")
def take(g, x, index):
    return g.op("Gather", g.reshape(x, [-1]), index, axis=0, shape=index.shape)


@rule("index")
def index(g, x, indices):
    places = [d for d, i in enumerate(indices) if i is not None]
    if any(indices[d].dtype == torch.bool for d in places):
        return _masked(g, x, indices, places)
    if len(places) == 1:
        return g.op("Gather", x, indices[places[0]], axis=places[0], shape=g.out.shape)
    # The indexed dimensions come first, are gathered together, and go where the first one was.
    order = places + [d for d in range(x.dim) if d not in places]
    moved = g.op("Transpose", x, perm=order, shape=[x.shape[d] for d in order])
    shape = torch.broadcast_shapes(*(indices[d].shape for d in places))
    columns = [_column(g, indices[d], places, indices, shape) for d in places]
    together = g.op("Concat", *columns, axis=-1, shape=(*shape, len(places)))
    taken = g.op("GatherND", moved, together, dtype=x.dtype, shape=g.out.shape)
    if places == list(range(places[0], places[-1] + 1)) and places[0]:
        back = list(range(len(shape), len(shape) + places[0])) + list(range(len(shape)))
        back += range(len(back), taken.dim)
        taken = g.op("Transpose", taken, perm=back)
    return taken


def _column(g, one, places, indices, shape):
    """The index for one dimension, in the shape that all of them broadcast to, as a column."""
    for d in places:
        if indices[d] is not one and indices[d].shape != one.shape:
            like = g.op("Shape", indices[d], dtype=torch.int64, shape=(indices[d].dim,))
            one = g.op("Expand", one, like, shape=shape)
    return g.op("Unsqueeze", g.cast(one, torch.int64), g.ints([-1]), shape=(*shape, 1))


def _masked(g, x, indices, places):
    if len(places) != 1 or places[0]:
        raise NotImplementedError("onnx.export: masks beside other indices, x[:, mask] or x[mask, i]")
    rows = RULES["nonzero"](g, indices[0])
    return g.op("GatherND", x, rows, dtype=x.dtype, shape=g.out.shape)


@rule("nonzero")
def nonzero(g, x):
    by_dimension = g.op("NonZero", x, dtype=torch.int64, shape=(x.dim, 1))
    return g.op("Transpose", by_dimension, perm=[1, 0], shape=(1, x.dim))


@rule("masked_select")
def masked_select(g, x, mask):
    return _masked(g, x, [mask], [0])


@rule("scatter")
def scatter(g, x, dim, index, src=None, *, value=None, reduce=None):
    if not isinstance(src, Value):
        number = src if src is not None else value
        like = g.op("Shape", index, dtype=torch.int64, shape=(index.dim,))
        src = g.op("Expand", g.constant(number, x.dtype), like, dtype=x.dtype, shape=index.shape)
    how = {None: None, "add": "add", "multiply": "mul"}[reduce]
    return g.op("ScatterElements", x, index, src, axis=dim % x.dim, reduction=how)


@rule("scatter_add")
def scatter_add(g, x, dim, index, src):
    return g.op("ScatterElements", x, index, src, axis=dim % x.dim, reduction="add")


@rule("scatter_reduce")
def scatter_reduce(g, x, dim, index, src, reduce, *, include_self=True):
    kinds = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if reduce not in kinds or not include_self:
        raise NotImplementedError(
            "onnx.export: scatter_reduce of means, or without the elements that are there"
        )
    return g.op("ScatterElements", x, index, src, axis=dim % x.dim, reduction=kinds[reduce])


@rule("index_fill")
def index_fill(g, x, dim, index, value):
    """The places along the dimension are compared with the index."""
    dim %= x.dim
    places = g.op("Range", 0, g.size(x, dim), 1, dtype=torch.int64, shape=(x.shape[dim],))
    behind = list(range(1, x.dim - dim + 1))
    column = g.op("Unsqueeze", places, g.ints(behind), shape=(x.shape[dim], *[1] * len(behind)))
    listed = g.reshape(index, [-1])
    shape = (*column.shape[:-1], *listed.shape)
    equal = g.cast(g.op("Equal", column, listed, dtype=torch.bool, shape=shape), torch.int32)
    hit = g.cast(g.op("ReduceMax", equal, g.ints([-1]), keepdims=0, shape=shape[:-1]), torch.bool)
    value = g.cast(value, x.dtype)
    return g.op("Where", hit, value, x, dtype=x.dtype, shape=x.shape)


@rule("index_put", "index_put_")
def index_put(g, x, indices, values, accumulate=False, *_):
    places = [d for d, i in enumerate(indices) if i is not None]
    if places != list(range(len(places))) or any(indices[d].dtype == torch.bool for d in places):
        raise NotImplementedError("onnx.export: writing through masks, or to dimensions after the first ones")
    shape = torch.broadcast_shapes(*(indices[d].shape for d in places))
    columns = [_column(g, indices[d], places, indices, shape) for d in places]
    together = g.op("Concat", *columns, axis=-1, shape=(*shape, len(places)))
    rest = [g.size(x, d) for d in range(len(places), x.dim)]
    sizes = [g.size(together, d) for d in range(len(shape))]
    updates = g.op("Expand", values, g.ints(sizes + rest), dtype=x.dtype)
    return g.op("ScatterND", x, together, updates, reduction="add" if accumulate else None)


@rule("one_hot")
def one_hot(g, x, num_classes=-1):
    if num_classes < 0:
        raise NotImplementedError("onnx.export: one_hot without num_classes")
    return g.op("OneHot", x, g.ints([num_classes]), g.constant([0, 1], torch.int64), shape=g.out.shape)


def _put_rows(g, x, rows, dim, positions):
    """Replaces what lies at the positions (a vector) along a dimension."""
    order = [dim, *(d for d in range(x.dim) if d != dim)]
    back = [order.index(d) for d in range(x.dim)]
    moved, updates = (g.op("Transpose", v, perm=order) for v in (x, rows))
    column = g.op("Unsqueeze", positions, g.ints([1]), shape=(1, 1))
    return g.op("Transpose", g.op("ScatterND", moved, column, updates), perm=back, shape=x.shape)


@rule("select_scatter")
def select_scatter(g, x, src, dim, index):
    dim %= x.dim
    row = g.op("Unsqueeze", src, g.ints([dim]), shape=(*x.shape[:dim], 1, *x.shape[dim + 1 :]))
    return _put_rows(g, x, row, dim, g.ints([index]))


@rule("slice_scatter")
def slice_scatter(g, x, src, dim=0, start=None, end=None, step=1):
    dim %= x.dim
    zero = g.constant(0, torch.int64)
    everything = g.op("Range", zero, g.size(x, dim), g.constant(1, torch.int64), shape=(x.shape[dim],))
    ends = (0 if start is None else start, 2**63 - 1 if end is None else end, 0, step)
    positions = g.op("Slice", everything, *(g.ints([n]) for n in ends))
    return _put_rows(g, x, src, dim, positions)
