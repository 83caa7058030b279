"""Operators that take and put elements by index."""

import math

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
    if any(i is not None and i.dtype == torch.bool and i.dim == x.dim for i in indices):
        return masked_select(g, x, indices[0])
    indices = _positions(g, indices)
    places = [d for d, i in enumerate(indices) if i is not None]
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


@rule("nonzero")
def nonzero(g, x):
    by_dimension = g.op("NonZero", x, dtype=torch.int64, shape=(x.dim, 1))
    return g.op("Transpose", by_dimension, perm=[1, 0], shape=(1, x.dim))


@rule("masked_select")
def masked_select(g, x, mask):
    if mask.shape != x.shape:
        x, mask = _equally_large(g, x, mask)
    return g.op("GatherND", x, RULES["nonzero"](g, mask), dtype=x.dtype, shape=g.out.shape)


def _equally_large(g, *values):
    shape = torch.broadcast_shapes(*(v.shape for v in values))
    sizes = [g.op("Shape", v, dtype=torch.int64, shape=(v.dim,)) for v in values]
    return [g.op("Expand", v, other, shape=shape) for v, other in zip(values, reversed(sizes))]


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
    how = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}[reduce]
    write = lambda base, values: g.op("ScatterElements", base, index, values, axis=dim % x.dim, reduction=how)
    if not include_self:
        x = _neutral_where_written(g, x, dim, index, reduce)
    result = write(x, src)
    if reduce != "mean":
        return result

    def each(value, like):
        sizes = g.op("Shape", like, dtype=torch.int64, shape=(like.dim,))
        return g.op("Expand", g.constant(value, x.dtype), sizes, shape=like.shape)

    count = write(each(int(include_self), x), each(1, index))
    options = {} if x.is_floating_point else {"rounding_mode": "floor"}
    return RULES["div"](g, result, g.op("Max", count, 1), **options)


def _neutral_where_written(g, x, dim, index, reduce):
    """The elements that `scatter_reduce` starts from: what is written over does not count."""

    def filled(number, like):
        sizes = g.op("Shape", like, dtype=torch.int64, shape=(like.dim,))
        return g.op("Expand", g.constant(number, torch.int32), sizes, shape=like.shape)

    untouched, ones = filled(0, x), filled(1, index)
    hit = g.cast(g.op("ScatterElements", untouched, index, ones, axis=dim % x.dim), torch.bool)
    neutral = {"prod": 1, "amax": g.infinity(x.dtype, -1), "amin": g.infinity(x.dtype)}.get(reduce, 0)
    return g.op("Where", hit, g.constant(neutral, x.dtype), x, dtype=x.dtype, shape=x.shape)


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
    if len(indices) == 1 and indices[0].dtype == torch.bool and not accumulate and not values.dim:
        return _filled(g, x, indices[0], values)
    indices = _positions(g, indices)
    places = [d for d, i in enumerate(indices) if i is not None]
    shape = torch.broadcast_shapes(*(indices[d].shape for d in places))
    columns = [_column(g, indices[d], places, indices, shape) for d in places]
    together = g.op("Concat", *columns, axis=-1, shape=(*shape, len(places)))
    # The indexed dimensions are written as the first ones.
    rest = [d for d in range(x.dim) if d not in places]
    order = places + rest
    moved = g.op("Transpose", x, perm=order, shape=[x.shape[d] for d in order])
    counts = [g.size(together, d) for d in range(len(shape))]
    sizes = [g.size(x, d) for d in rest]
    before = places[0] if places == list(range(places[0], places[-1] + 1)) else 0
    full = g.ints(sizes[:before] + counts + sizes[before:])
    full_shape = (*(x.shape[d] for d in rest[:before]), *shape, *(x.shape[d] for d in rest[before:]))
    updates = g.op("Expand", values, full, dtype=x.dtype, shape=full_shape)
    if before:
        axes = [*range(before, before + len(shape)), *range(before)]
        axes += range(len(axes), len(full_shape))
        updates = g.op("Transpose", updates, perm=axes, shape=[full_shape[a] for a in axes])
    written = g.op("ScatterND", moved, together, updates, reduction="add" if accumulate else None)
    return g.op("Transpose", written, perm=[order.index(d) for d in range(x.dim)], shape=x.shape)


def _filled(g, x, mask, value):
    behind = list(range(mask.dim, x.dim))
    if behind:
        mask = g.op("Unsqueeze", mask, g.ints(behind), shape=(*mask.shape, *[1] * len(behind)))
    return g.op("Where", mask, g.cast(value, x.dtype), x, dtype=x.dtype, shape=x.shape)


def _positions(g, indices):
    """Masks replaced by where they are true, an index for each of their dimensions."""
    found = []
    for index in indices:
        if index is None or index.dtype != torch.bool:
            found.append(index)
            continue
        by_dimension = g.op("NonZero", index, dtype=torch.int64, shape=(index.dim, 1))
        for d in range(index.dim):
            found.append(g.op("Gather", by_dimension, g.constant(d, torch.int64), axis=0, shape=(1,)))
    return found


@rule("put")
def put(g, x, index, source, accumulate=False):
    flat = g.reshape(x, [-1])
    places = g.op("Unsqueeze", g.reshape(index, [-1]), g.ints([-1]), shape=(math.prod(index.shape), 1))
    how = "add" if accumulate else None
    written = g.op("ScatterND", flat, _from_front(g, places, flat), g.reshape(source, [-1]), reduction=how)
    return g.op("Reshape", written, g.op("Shape", x, dtype=torch.int64, shape=(x.dim,)), shape=x.shape)


def _from_front(g, places, flat):
    """Places counted from the end as those from the front."""
    negative = g.op("Less", places, 0, dtype=torch.bool)
    return g.op("Where", negative, g.op("Add", places, g.size(flat, 0)), places, dtype=torch.int64)


@rule("masked_scatter")
def masked_scatter(g, x, mask, source):
    """The n-th place that is true takes the n-th element of the source."""
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    sizes = g.op("Shape", x, dtype=torch.int64, shape=(x.dim,))
    if mask.shape != x.shape:
        mask = g.op("Expand", mask, sizes, shape=shape)
    rows = RULES["nonzero"](g, mask)
    count = g.op("Shape", rows, dtype=torch.int64, shape=(1,), start=0, end=1)
    taken = g.op("Slice", g.reshape(source, [-1]), g.ints([0]), count, shape=(1,))
    return g.op("ScatterND", x, rows, taken, shape=x.shape)


@rule("as_strided")
def as_strided(g, x, size, stride, storage_offset=None):
    """Of a tensor that lies as it is read, whose elements are then counted from its first one."""
    example = g.operands[0]
    known = all(isinstance(n, int) for n in (*size, *stride, storage_offset or 0))
    if not known or not example.is_contiguous() or example.storage_offset():
        raise NotImplementedError(
            "onnx.export: as_strided of a tensor that is not contiguous, or of open sizes"
        )
    places = torch.full((), storage_offset or 0, dtype=torch.int64)
    for n, step in zip(size, stride, strict=True):
        places = places[..., None] + torch.arange(n) * step
    return g.op("Gather", g.reshape(x, [-1]), g.initializer("places", places), axis=0, shape=tuple(size))


@rule("diagonal_scatter")
def diagonal_scatter(g, x, src, offset=0, dim1=0, dim2=1):
    """The diagonal is chosen from the source, which is spread along the other dimension."""
    dim1, dim2 = dim1 % x.dim, dim2 % x.dim
    zero, one = g.constant(0, torch.int64), g.constant(1, torch.int64)
    rows, columns = (
        g.op("Range", zero, g.size(x, d), one, shape=(x.shape[d],)) for d in (dim1, dim2)
    )  # fmt: skip
    first = g.op("Unsqueeze", rows, g.ints([1]), shape=(x.shape[dim1], 1))
    square = (x.shape[dim1], x.shape[dim2])
    mask = g.op("Equal", g.op("Add", first, offset), columns, dtype=torch.bool, shape=square)
    # Where along the source each row lies.
    last = g.op("Sub", g.size(src, -1), 1, shape=())
    place = rows if offset >= 0 else g.op("Add", rows, offset)
    place = g.op("Clip", place, zero, last)
    spread = g.op("Gather", src, place, axis=src.dim - 1, shape=(*src.shape[:-1], x.shape[dim1]))
    spread = g.op("Unsqueeze", spread, g.ints([-1]), shape=(*spread.shape, 1))
    others = [d for d in range(x.dim) if d not in (dim1, dim2)]
    order = [*others, dim1, dim2]
    moved = g.op("Transpose", x, perm=order, shape=[x.shape[d] for d in order])
    written = g.op("Where", mask, g.cast(spread, x.dtype), moved, dtype=x.dtype, shape=moved.shape)
    return g.op("Transpose", written, perm=[order.index(d) for d in range(x.dim)], shape=x.shape)


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
