"""Reductions: along a dimension that is kept each process has its part, along one that goes, a term."""

from rushlight.distributed.tensor.placement_types import Partial, Shard, _NormPartial

ADJUSTMENTS: dict = {}

_TERMS = {"sum": "sum", "nansum": "sum", "count_nonzero": "sum", "amax": "max", "amin": "min", "max": "max",
          "min": "min", "prod": "product"}  # fmt: skip


def _dims(call, rank, name):
    if name not in call.names:
        return set(range(rank))
    dims = call[name]
    if dims is None or (isinstance(dims, (list, tuple)) and len(dims) == 0):
        return set(range(rank))
    dims = dims if isinstance(dims, (list, tuple)) else [dims]
    return {d % rank for d in dims} if rank else set()


def reduction(call):
    rank = len(call.shape("self"))
    reduced = _dims(call, rank, "dims" if "dims" in call.names else "dim")
    keep = "keepdim" in call.names and bool(call["keepdim"])
    several = len(call.out_metas)
    ways = []
    for dim in range(rank):
        if dim in reduced:
            term = _term(call, dim)
            if term is not None and several == 1:
                ways.append(call.way(term, self=Shard(dim)))
            continue
        out = dim if keep else dim - sum(r < dim for r in reduced)
        ways.append(call.way(*[Shard(out)] * several, self=Shard(dim)))
    if call.name in ("sum", "mean"):
        ways += [call.way(p, self=p) for p in call.partials() if p.reduce_op in ("sum", "avg")]
    return ways


def _term(call, dim):
    if call.name == "mean":
        ranks = max(call.mesh.shape)
        even = all(call.shape("self")[dim] % size == 0 for size in (*call.mesh.shape, call.mesh.size()))
        return Partial("avg") if even and ranks else None
    if call.name == "vector_norm":
        order = call["ord"]
        return _NormPartial(2 if order is None else order) if order != 0 else Partial("sum")
    if call.name in ("max", "min") and "dim" in call.names:
        return None
    if call.name in ("amax", "amin", "max", "min") and not call.specs[0].dtype.is_floating_point:
        return Partial(_TERMS[call.name]) if call.specs[0].dtype.itemsize > 1 else None
    how = _TERMS.get(call.name)
    return Partial(how) if how else None


RULES: dict = {}  # all of this family
