"""Sums and their kin over all, rows, columns and the middle; scans; sorting and searching."""

import torch

from ..case import Case
from .data import normals, numbers

REDUCTIONS = {
    "sum": lambda x, *dim: x.sum(*dim),
    "mean": lambda x, *dim: x.mean(*dim),
    "max": lambda x, *dim: x.max(*dim),
    "amax": lambda x, *dim: x.amax(*dim),
    "argmax": lambda x, *dim: x.argmax(*dim),
    "var": lambda x, *dim: x.var(*dim),
    "norm": lambda x, *dim: torch.linalg.vector_norm(x, 2, *dim),
    "prod": lambda x, *dim: x.prod(*dim),
    "all": lambda x, *dim: (x > -9).all(*dim),
}


def reduction(function, shape, *dim, dtype="float32"):
    x = numbers(*shape, dtype=dtype)
    return lambda: function(x, *dim)


def logsumexp(shape, dim):
    x = normals(*shape)
    return lambda: torch.logsumexp(x, dim)


def median(n):
    x = normals(n, n)
    return lambda: x.median(1)


def sort(*shape, dtype="float32", dim=-1):
    x = torch.randint(0, 2**20, shape) if dtype == "int64" else normals(*shape, dtype=dtype)
    return lambda: x.sort(dim)


def of_normals(function, *shape):
    x = normals(*shape)
    return lambda: function(x)


def of_integers(function, n, limit):
    x = torch.randint(0, limit, (n,))
    return lambda: function(x)


def searchsorted(n):
    boundaries, values = normals(n).sort().values, normals(n)
    return lambda: torch.searchsorted(boundaries, values)


def cases(sizes):
    n, side = sizes(2**22, 64), sizes(2048, 8)
    places = {"": (), " over rows": (1,), " over columns": (0,)}
    for name, function in REDUCTIONS.items():
        for place, dim in places.items():
            yield Case(f"reduction/{name}{place}", lambda f=function, d=dim: reduction(f, (side, side), *d))
    middle = (sizes(64, 2), sizes(256, 3), sizes(256, 4))
    yield Case("reduction/sum over the middle", lambda: reduction(REDUCTIONS["sum"], middle, 1))
    lines = (sizes(2**18, 16), 4)
    for name in ("sum", "amax", "prod"):
        yield Case(f"reduction/{name} of short lines", lambda f=REDUCTIONS[name]: reduction(f, lines, 1))
    for name in ("amax", "var", "norm"):
        yield Case(
            f"reduction/{name} float16 over rows",
            lambda f=REDUCTIONS[name]: reduction(f, (side, side), 1, dtype="float16"),
        )
    for dtype in ("float64", "bfloat16", "float16", "int64", "bool"):
        yield Case(f"reduction/sum {dtype}", lambda d=dtype: reduction(REDUCTIONS["sum"], (n,), dtype=d))
        yield Case(
            f"reduction/sum {dtype} over columns",
            lambda d=dtype: reduction(REDUCTIONS["sum"], (side, side), 0, dtype=d),
        )
    yield Case("reduction/logsumexp over rows", lambda: logsumexp((side, side), 1))
    yield Case("reduction/median over rows", lambda: median(sizes(1024, 8)))
    yield Case("scan/cumsum", lambda: of_normals(lambda x: x.cumsum(0), n))
    yield Case("scan/cumsum over rows", lambda: of_normals(lambda x: x.cumsum(1), side, side))
    yield Case("scan/cumsum over columns", lambda: of_normals(lambda x: x.cumsum(0), side, side))
    yield Case("scan/cumprod over rows", lambda: of_normals(lambda x: x.cumprod(1), side, side))
    yield Case("scan/cummax over rows", lambda: of_normals(lambda x: x.cummax(1), side, side))
    yield Case("scan/cumsum of short lines", lambda: of_normals(lambda x: x.cumsum(1), *lines))
    million = sizes(2**20, 32)
    yield Case("order/sort", lambda: sort(million))
    yield Case("order/sort int64", lambda: sort(million, dtype="int64"))
    yield Case("order/sort rows", lambda: sort(sizes(1024, 4), sizes(1024, 4)))
    yield Case("order/sort columns", lambda: sort(sizes(1024, 4), sizes(1024, 4), dim=0))
    yield Case("order/argsort stable", lambda: of_normals(lambda x: x.argsort(stable=True), million))
    yield Case("order/topk 10 of rows", lambda: of_normals(lambda x: x.topk(4), side, side))
    yield Case("order/topk 100", lambda: of_normals(lambda x: x.topk(sizes(100, 3)), n))
    yield Case("order/kthvalue", lambda: of_normals(lambda x: x.kthvalue(3), sizes(1024, 4), sizes(1024, 4)))
    yield Case("order/unique", lambda: of_integers(torch.unique, million, 1000))
    consecutive = torch.unique_consecutive
    yield Case("order/unique_consecutive", lambda: of_integers(consecutive, million, 1000))
    yield Case("order/bincount", lambda: of_integers(torch.bincount, n, 1000))
    yield Case("order/searchsorted", lambda: searchsorted(million))
    yield Case("order/histc", lambda: of_normals(lambda x: x.histc(100), n))
    yield Case("order/histogram", lambda: of_normals(lambda x: x.histogram(100), n))
    yield Case("order/quantile", lambda: of_normals(lambda x: x.quantile(0.9), million))
