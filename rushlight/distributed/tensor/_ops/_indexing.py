"""Operators along one dimension, and indexing."""

from rushlight.distributed.tensor.placement_types import Shard

ADJUSTMENTS: dict = {}


def _along_dim(call):
    """Each line along `dim` is computed by itself: any other dimension may be cut, in all tensors alike."""
    shape = call.specs[0].shape
    rank = len(shape)
    dim = call["dim"] if "dim" in call.names else None
    if dim is None or not rank:
        return []
    dim %= rank
    keeps = len(call.out_shapes[0]) == rank
    ways = []
    for d in range(rank):
        if d == dim or any(len(spec.shape) not in (0, rank) for spec in call.specs):
            continue
        if any(len(spec.shape) == rank and spec.shape[d] != shape[d] for spec in call.specs):
            continue
        out = d if keeps else d - (d > dim)
        inputs = [Shard(d) if len(spec.shape) else call.way()[1][0] for spec in call.specs]
        ways.append(([Shard(out)] * len(call.out_metas), inputs))
    return ways


def _index_select(call):
    rank = len(call.shape("self"))
    dim = call.dim()
    ways = [call.way(Shard(d), self=Shard(d)) for d in range(rank) if d != dim]
    return ways + [call.way(Shard(dim), index=Shard(0))] if rank else []


def _index(call):
    """Dimensions that no index touches stay where they are, behind or before what the indices give."""
    rank = len(call.shape("self"))
    indices = call["indices"]
    touched = [i for i, index in enumerate(indices) if index is not None]
    if not touched or touched != list(range(touched[0], touched[-1] + 1)):
        return []
    if any(index is not None and index.dtype.itemsize == 1 for index in indices):
        return []  # masks take several dimensions
    given = len(call.out_shapes[0]) - (rank - len(touched))
    ways = []
    for d in range(rank):
        if d not in touched:
            out = d if d < touched[0] else d - len(touched) + given
            ways.append(call.way(Shard(out), self=Shard(d)))
    shapes = [spec.shape for spec, name in zip(call.specs, call.where) if name == "indices"]
    if all(shape == shapes[0] for shape in shapes):
        ways += [call.way(Shard(touched[0] + d), indices=Shard(d)) for d in range(len(shapes[0]))]
    return ways


def _tri(call):
    rank = len(call.specs[0].shape)
    return [call.way(Shard(d), self=Shard(d)) for d in range(rank - 2)]


RULES = {
    **dict.fromkeys(
        """
        cumsum cumprod cummax cummin logcumsumexp sort argsort topk kthvalue median nanmedian mode _softmax
        _log_softmax _softmax_backward_data _log_softmax_backward_data gather scatter scatter_add
        scatter_reduce
        index_fill
        """.split(),
        _along_dim,
    ),
    "index_select": _index_select,
    "index": _index,
    "tril": _tri,
    "triu": _tri,
}
