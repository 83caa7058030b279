"""Operators that move and make elements."""

import rushlight as torch

from .._graph import Value
from ._registry import RULES, rule


def _view(g, x, size, *_, **__):
    return g.reshape(x, size) if size else g.op("Reshape", x, g.constant([], torch.int64), shape=())


for _name in ("view", "_unsafe_view", "reshape"):
    RULES[_name] = _view


@rule("expand")
def expand(g, x, size, *, implicit=False):
    new = [1 if isinstance(n, int) and n == -1 else n for n in size]
    return g.op("Expand", x, g.ints(new), shape=g.out.shape)


@rule("permute")
def permute(g, x, dims):
    order = [d % x.dim for d in dims]
    return g.op("Transpose", x, perm=order, shape=[x.shape[d] for d in order])


@rule("transpose")
def transpose(g, x, dim0, dim1):
    if not x.dim:
        return x
    order = list(range(x.dim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return permute(g, x, order)


@rule("t")
def t(g, x):
    return transpose(g, x, 0, 1) if x.dim == 2 else x


@rule("unsqueeze")
def unsqueeze(g, x, dim):
    return g.op("Unsqueeze", x, g.ints([dim % (x.dim + 1)]), shape=g.out.shape)


@rule("squeeze")
def squeeze(g, x, dim=None):
    dims = range(x.dim) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [d % x.dim for d in dims if x.dim and x.shape[d] == 1]
    kept = [n for d, n in enumerate(x.shape) if d not in dims]
    return g.op("Squeeze", x, g.ints(dims), shape=kept) if dims else x


@rule("slice")
def slice_(g, x, dim=0, start=None, end=None, step=1):
    start = 0 if start is None else start
    end = 2**63 - 1 if end is None else end
    ends = [g.ints([n]) for n in (start, end, dim % x.dim, step)]
    return g.op("Slice", x, *ends, shape=g.out.shape)


@rule("select")
def select(g, x, dim, index):
    index = index if isinstance(index, Value) else g.constant(index, torch.int64)
    kept = x.shape[: dim % x.dim] + x.shape[dim % x.dim + 1 :]
    return g.op("Gather", x, index, axis=dim % x.dim, shape=kept)


def _pieces(g, x, sizes, dim):
    kept = list(x.shape)
    results = []
    for piece in (
        g.op("Split", x, g.ints(sizes), outputs=len(sizes), axis=dim % x.dim) if len(sizes) > 1 else [x]
    ):
        kept[dim] = sizes[len(results)] if isinstance(sizes[len(results)], int) else 1
        results.append(Value(piece.name, x.dtype, tuple(kept)))
    return results


@rule("split")
def split(g, x, split_size, dim=0):
    if isinstance(split_size, int) and not g.changes(0, dim):
        total = x.shape[dim]
        return _pieces(g, x, [min(split_size, total - at) for at in range(0, total, split_size)], dim)
    # As many as in the example, whatever their size; the last one takes the rest.
    pieces = []
    for i in range(len(g.out)):
        start = i * split_size if isinstance(split_size, int) else g.op("Mul", split_size, i)
        end = 2**63 - 1
        if i + 1 < len(g.out):
            end = start + split_size if isinstance(split_size, int) else g.op("Mul", split_size, i + 1)
        ends = [g.ints([n]) for n in (start, end, dim % x.dim)]
        pieces.append(g.op("Slice", x, *ends))
    return pieces


@rule("split_with_sizes")
def split_with_sizes(g, x, split_sizes, dim=0):
    return _pieces(g, x, split_sizes, dim)


@rule("unbind")
def unbind(g, x, dim=0):
    return [select(g, x, dim, i) for i in range(x.shape[dim])]


@rule("cat")
def cat(g, tensors, dim=0):
    tensors = [t for t in tensors if t.shape != (0,)]  # which PyTorch lets pass
    tensors = g.promote(*tensors) if len(tensors) > 1 else tensors
    return g.op("Concat", *tensors, axis=dim % tensors[0].dim, shape=g.out.shape)


@rule("stack")
def stack(g, tensors, dim=0):
    dim %= tensors[0].dim + 1
    parts = [g.op("Unsqueeze", t, g.ints([dim]), shape=(*t.shape[:dim], 1, *t.shape[dim:])) for t in tensors]
    return g.op("Concat", *parts, axis=dim, shape=g.out.shape)


@rule("flip")
def flip(g, x, dims):
    dims = [d % x.dim for d in dims]
    everything = [[-1] * len(dims), [-(2**63)] * len(dims), dims, [-1] * len(dims)]
    return g.op("Slice", x, *map(g.ints, everything)) if dims else x


@rule("roll")
def roll(g, x, shifts, dims=()):
    if not dims:
        return g.reshape_as(roll(g, g.reshape(x, [-1]), shifts, [0]), x)
    for shift, dim in zip(shifts, dims, strict=True):
        # The last `shift` elements come first; a shift that is computed may be any, also none.
        if not isinstance(shift, int):
            size = g.size(x, dim)
            shift = g.op("Sub", size, g.op("Mod", shift, size, dtype=torch.int64, shape=()))
            parts = [(shift, 2**63 - 1), (0, shift)]
        else:
            parts = [((-shift), 2**63 - 1), (0, -shift)] if shift else []
        pieces = [g.op("Slice", x, *(g.ints([n]) for n in (*part, dim % x.dim, 1))) for part in parts]
        x = g.op("Concat", *pieces, axis=dim % x.dim) if pieces else x
    return x


@rule("repeat")
def repeat(g, x, repeats):
    if len(repeats) > x.dim:
        x = g.op(
            "Unsqueeze",
            x,
            g.ints(list(range(len(repeats) - x.dim))),
            shape=(1,) * (len(repeats) - x.dim) + x.shape,
        )
    return g.op("Tile", x, g.ints(repeats), shape=g.out.shape)


@rule("diagonal")
def diagonal(g, x, offset=0, dim1=0, dim2=1):
    if offset or x.dim != 2 or x.shape[0] != x.shape[1]:
        raise NotImplementedError("onnx.export: diagonals of what is not a square matrix")
    g.refuse_changing(0, [0], "a diagonal along")
    flat = g.reshape(x, [-1])
    return g.op("Slice", flat, *(g.ints([n]) for n in (0, 2**63 - 1, 0, x.shape[0] + 1)), shape=g.out.shape)


def _triangle(upper):
    def translate(g, x, diagonal=0):
        as_number = g.cast(x, torch.int64) if x.dtype == torch.bool else x
        return g.cast(g.op("Trilu", as_number, g.constant(diagonal, torch.int64), upper=upper), x.dtype)

    return translate


RULES["tril"], RULES["triu"] = _triangle(0), _triangle(1)


def _places(g, x, dim, windows, size, step):
    """Of the elements of all windows along a dimension, a row each."""
    within = torch.arange(size)
    if not g.changes(0, dim):
        return g.constant(torch.arange(windows)[:, None] * step + within)
    # Windows start in front of the last place at which a whole one fits.
    last = g.op("Sub", g.size(x, dim), size - 1)
    starts = g.op("Range", g.constant(0, torch.int64), last, g.constant(step, torch.int64), shape=(windows,))
    column = g.op("Unsqueeze", starts, g.ints([1]), shape=(windows, 1))
    return g.op("Add", column, g.constant(within), shape=(windows, size))


@rule("unfold")
def unfold(g, x, dimension, size, step):
    if not x.dim:
        raise NotImplementedError("onnx.export: unfold of a tensor without dimensions")
    dim = dimension % x.dim
    windows = (x.shape[dim] - size) // step + 1
    shape = (*x.shape[:dim], windows, size, *x.shape[dim + 1 :])
    taken = g.op("Gather", x, _places(g, x, dim, windows, size, step), axis=dim, shape=shape)
    order = [d for d in range(x.dim + 1) if d != dim + 1] + [dim + 1]
    return g.op("Transpose", taken, perm=order, shape=g.out.shape)


@rule("diag_embed")
def diag_embed(g, x, offset=0, dim1=-2, dim2=-1):
    dims = x.dim + 1
    if offset or {dim1 % dims, dim2 % dims} != {dims - 2, dims - 1}:
        raise NotImplementedError("onnx.export: diag_embed beside the main diagonal, or of other dimensions")
    n = x.shape[-1]
    g.refuse_changing(0, [-1], "diag_embed of")
    each = g.op("Unsqueeze", x, g.ints([-1]), shape=(*x.shape, 1))
    diagonal = g.constant(torch.eye(n, dtype=torch.bool))
    return g.op("Where", diagonal, each, g.constant(0, x.dtype), dtype=x.dtype, shape=g.out.shape)


def _paddings(pad, dim):
    before, after = [0] * dim, [0] * dim
    for i in range(len(pad) // 2):
        before[-1 - i], after[-1 - i] = pad[2 * i], pad[2 * i + 1]
    return before + after


@rule("constant_pad_nd")
def constant_pad_nd(g, x, pad, value=0):
    return g.op("Pad", x, g.ints(_paddings(pad, x.dim)), g.constant(value, x.dtype), shape=g.out.shape)


def _other_pad(mode):
    return lambda g, x, pad: g.op("Pad", x, g.ints(_paddings(pad, x.dim)), mode=mode, shape=g.out.shape)


for _n in (1, 2, 3):
    RULES[f"reflection_pad{_n}d"], RULES[f"replication_pad{_n}d"] = _other_pad("reflect"), _other_pad("edge")


@rule("_pad_circular")
def pad_circular(g, x, pad):
    def part(of, dim, start, end):
        return g.op("Slice", of, *(g.ints([n]) for n in (start, end, dim, 1)))

    for i in range(len(pad) // 2):
        dim, before, after = x.dim - 1 - i, pad[2 * i], pad[2 * i + 1]
        if before < 0 or after < 0:
            x = part(x, dim, max(-before, 0), min(after, 0) or 2**63 - 1)
        pieces = [part(x, dim, -before, 2**63 - 1)] if before > 0 else []
        pieces += [x, part(x, dim, 0, after)] if after > 0 else [x]
        x = g.op("Concat", *pieces, axis=dim)
    return Value(x.name, x.dtype, g.out.shape)


# Factories.


def _filled(g, size, value, dtype):
    return g.op("Expand", g.cast(value, dtype), g.ints(list(size)), dtype=dtype, shape=g.out.shape)


for _name, _number in {
    "zeros": 0,
    "ones": 1,
    "empty": 0,
    "new_zeros": 0,
    "new_ones": 1,
    "new_empty": 0,
}.items():
    if _name.startswith("new_"):
        RULES[_name] = lambda g, x, size, n=_number, **_: _filled(g, size, n, g.out.dtype)
    else:
        RULES[_name] = lambda g, size, n=_number, **_: _filled(g, size, n, g.out.dtype)
RULES["full"] = lambda g, size, value, **_: _filled(g, size, value, g.out.dtype)
RULES["new_full"] = lambda g, x, size, value, **_: _filled(g, size, value, g.out.dtype)


def _filled_like(g, x, value):
    shape = g.op("Shape", x, dtype=torch.int64, shape=(x.dim,))
    return g.op("Expand", g.cast(value, g.out.dtype), shape, dtype=g.out.dtype, shape=x.shape)


RULES["zeros_like"] = RULES["empty_like"] = lambda g, x, **_: _filled_like(g, x, 0)
RULES["ones_like"] = lambda g, x, **_: _filled_like(g, x, 1)
RULES["full_like"] = lambda g, x, value, **_: _filled_like(g, x, value)
RULES["fill"] = _filled_like


@rule("scalar_tensor")
def scalar_tensor(g, value, **_):
    return g.cast(value, g.out.dtype)


@rule("arange")
def arange(g, *ends, **_):
    start, end, step = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1)[:3]
    dtype = torch.int64 if g.out.dtype in (torch.int32, torch.int64) else g.out.dtype
    given = [g.cast(n, dtype) for n in (start, end, step)]
    return g.cast(g.op("Range", *given, dtype=dtype, shape=g.out.shape), g.out.dtype)


@rule("eye")
def eye(g, n, m=None, **_):
    return g.constant(torch.eye(n, n if m is None else m, dtype=g.out.dtype))
