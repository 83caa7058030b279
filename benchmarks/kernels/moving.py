"""Copies, casts, joins; indices and masks; random numbers."""

import torch
import torch.nn.functional as F

from ..case import Case
from .data import LAYOUTS, backward, normals, numbers

COPIES = {
    "clone": lambda x: x.clone(),
    "transpose": lambda x: x.t().contiguous(),
    "flip": lambda x: x.flip(0),
    "flip rows": lambda x: x.flip(1),
    "roll": lambda x: x.roll(3, 1),
    "repeat": lambda x: x.repeat(1, 2),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 0),
    "pad": lambda x: F.pad(x, (3, 3)),
    "pad, reflected": lambda x: F.pad(x, (3, 3), mode="reflect"),
    "pad, replicated in 2 dimensions": lambda x: F.pad(x[None, None], (3, 3, 3, 3), mode="replicate"),
    "cat": lambda x: torch.cat([x, x]),
    "cat columns": lambda x: torch.cat([x, x], 1),
    "stack last": lambda x: torch.stack([x, x], -1),
    "stack 3 last": lambda x: torch.stack([x, x, x], -1),
    "unfold": lambda x: x.unfold(1, 4, 2).contiguous(),
    "tril": lambda x: x.tril(),
    "zeros": lambda x: torch.zeros_like(x),
    "fill": lambda x: torch.empty_like(x).fill_(1.0),
}
CASTS = [
    ("float32", "bfloat16"),
    ("bfloat16", "float32"),
    ("float32", "float16"),
    ("float32", "float64"),
    ("float32", "int64"),
    ("int64", "float32"),
    ("uint8", "float32"),
    ("bool", "float32"),
]
RANDOM = {
    "rand": lambda n: torch.rand(n),
    "randn": lambda n: torch.randn(n),
    "randint": lambda n: torch.randint(0, 1000, (n,)),
    "bernoulli": lambda n: torch.empty(n).bernoulli_(0.3),
    "exponential": lambda n: torch.empty(n).exponential_(),
    "randperm": lambda n: torch.randperm(n // 4),
}


def copy(function, n, dtype="float32"):
    x = numbers(n, n, dtype=dtype)
    return lambda: function(x)


def copy_layout(n, layout, dtype):
    source, target = LAYOUTS[layout](n, dtype), numbers(n, n, dtype=dtype)
    return lambda: target.copy_(source)


def cast(n, source, target):
    x, dtype = numbers(n, dtype=source), getattr(torch, target)
    return lambda: x.to(dtype)


def permute(shape, order):
    x = normals(*shape)
    return lambda: x.permute(order).contiguous()


def channels_last(shape):
    x = normals(*shape)
    return lambda: x.contiguous(memory_format=torch.channels_last)


def rows(function, count, width, taken):
    """A table with `count` rows of which `taken` are wanted."""
    table, index = normals(count, width), torch.randint(0, count, (taken,))
    return lambda: function(table, index)


def embedding_gradient(count, width, taken):
    table, index = normals(count, width, requires_grad=True), torch.randint(0, count, (taken,))
    return backward(lambda: F.embedding(index, table), table)


def index_gradient(count, width, taken):
    table, index = normals(count, width, requires_grad=True), torch.randint(0, count, (taken,))
    return backward(lambda: table[index], table)


def add_rows(function, count, width, taken):
    table, index = normals(count, width), torch.randint(0, count, (taken,))
    values = normals(taken, width)
    return lambda: function(table, index, values)


def by_element(function, n):
    x, index = normals(n, n), torch.randint(0, n, (n, n))
    return lambda: function(x, index)


def masked(function, n):
    x = normals(n)
    mask = x > 0
    return lambda: function(x, mask)


def dropout(n):
    x = normals(n)
    return lambda: F.dropout(x, 0.3)


def cases(sizes):
    n, side = sizes(2**22, 64), sizes(2048, 8)
    for name, function in COPIES.items():
        yield Case(f"copy/{name}", lambda f=function: copy(f, side))
    for dtype in ("bfloat16", "int64", "uint8", "complex64"):
        yield Case(f"copy/transpose {dtype}", lambda d=dtype: copy(COPIES["transpose"], side, d))
    for layout in list(LAYOUTS)[2:]:
        yield Case(f"copy/copy_, {layout}", lambda layout=layout: copy_layout(side, layout, "float32"))
    for source, target in CASTS:
        yield Case(f"copy/{source} to {target}", lambda s=source, t=target: cast(n, s, t))
    images = (8, sizes(64, 3), sizes(56, 4), sizes(56, 4))
    yield Case("copy/to channels last", lambda: channels_last(images))
    yield Case("copy/permute heads", lambda: permute((8, sizes(256, 3), 8, sizes(64, 4)), (0, 2, 1, 3)))
    yield Case("copy/permute all", lambda: permute(images, (3, 1, 2, 0)))
    count, width, taken = sizes(50000, 20), sizes(128, 4), sizes(20000, 10)
    yield Case("index/rows", lambda: rows(lambda x, i: x[i], count, width, taken))
    yield Case("index/wide rows", lambda: rows(lambda x, i: x[i], side, side, side))
    yield Case("index/index_select", lambda: rows(lambda x, i: x.index_select(0, i), count, width, taken))
    yield Case("index/columns", lambda: rows(lambda x, i: x[:, i], side, side, side))
    yield Case("index/embedding", lambda: rows(lambda x, i: F.embedding(i, x), count, width, taken))
    yield Case("index/embedding backward", lambda: embedding_gradient(count, width, taken))
    yield Case("index/rows backward", lambda: index_gradient(count, width, taken))
    yield Case(
        "index/index_add", lambda: add_rows(lambda x, i, v: x.index_add_(0, i, v), count, width, taken)
    )
    put = lambda x, i, v: x.index_put_((i,), v)
    yield Case("index/index_put", lambda: add_rows(put, count, width, taken))
    add = lambda x, i, v: x.index_put_((i,), v, accumulate=True)
    yield Case("index/index_put accumulate", lambda: add_rows(add, count, width, taken))
    yield Case("index/gather rows", lambda: by_element(lambda x, i: x.gather(1, i), side))
    yield Case("index/gather columns", lambda: by_element(lambda x, i: x.gather(0, i), side))
    yield Case("index/scatter", lambda: by_element(lambda x, i: x.scatter(1, i, 1.0), side))
    yield Case("index/scatter_add", lambda: by_element(lambda x, i: x.scatter_add(1, i, x), side))
    yield Case("index/take", lambda: by_element(lambda x, i: x.take(i), side))
    yield Case("index/mask", lambda: masked(lambda x, mask: x[mask], n))
    yield Case("index/assign by mask", lambda: masked(lambda x, mask: x.masked_fill(mask, 0.0), n))
    yield Case("index/nonzero", lambda: masked(lambda x, mask: mask.nonzero(), n))
    for name, function in RANDOM.items():
        yield Case(f"random/{name}", lambda f=function: lambda: f(n))
    yield Case("random/dropout", lambda: dropout(n))
    yield Case("random/multinomial", lambda: rows(lambda x, i: x.abs().multinomial(1), side, side, 1))
