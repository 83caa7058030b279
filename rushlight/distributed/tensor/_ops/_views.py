"""Views and other changes of shape: where each dimension of the input is found in the output."""

import rushlight as torch
from rushlight.distributed.tensor.placement_types import Replicate, Shard, _StridedShard

_PLAIN = (Replicate, Shard, _StridedShard)


def _kept(call, mapping):
    """Ways for {input dimension: output dimension}, and for sums, which any change of shape leaves alone."""
    outputs = len(call.out_metas)
    ways = [([Shard(out)] * outputs, [Shard(dim)] * len(call.specs)) for dim, out in mapping.items()]
    return ways + [([p] * outputs, [p] * len(call.specs)) for p in _sums(call)]


def _sums(call):
    """What any change of shape leaves alone: sums, and marked whole tensors."""
    return {p for spec in call.specs for p in spec.placements if p.is_partial() or type(p) not in _PLAIN}


def _view_map(call):
    """The dimensions that stay cut in the same places when a shape becomes another of as many elements."""
    old, new = list(call.specs[0].shape), list(call.out_shapes[0])
    mapping, i, j = {}, 0, 0
    while i < len(old) and j < len(new):
        i2, j2, a, b = i + 1, j + 1, old[i], new[j]
        while a != b:
            if a < b and i2 < len(old):
                a, i2 = a * old[i2], i2 + 1
            elif b < a and j2 < len(new):
                b, j2 = b * new[j2], j2 + 1
            else:
                return mapping
        # Dimensions of one element may lead either side.
        lead_old = next((k for k in range(i, i2) if old[k] != 1), i)
        lead_new = next((k for k in range(j, j2) if new[k] != 1), j)
        same = old[lead_old] == new[lead_new] and old[lead_old] == a
        ways = _pieces(call, lead_old)
        if same or (old[lead_old] % ways == 0 and new[lead_new] % ways == 0):
            mapping[lead_old] = lead_new
        i, j = i2, j2
    return mapping


def _pieces(call, dim):
    """Into how many parts a dimension may get cut."""
    pieces = 1
    for size, placement in zip(call.mesh.shape, call.specs[0].placements):
        pieces *= size if placement.is_shard(dim) else 1
    return pieces if pieces > 1 else call.mesh.size()


def _view(call):
    if call.overload == "dtype":
        return []
    return _kept(call, _view_map(call))


def _expand(call):
    old, new = call.specs[0].shape, call.out_shapes[0]
    shift = len(new) - len(old)
    ways = [
        call.way(Shard(dim + shift), self=Shard(dim))
        for dim in range(len(old))
        if old[dim] == new[dim + shift]
    ]
    # Copies along a new dimension may be cut, but who has the whole has no need of it.
    return ways + [call.way(p, self=p) for p in _sums(call)]


def _permute(call):
    rank = len(call.specs[0].shape)
    return _kept(call, {d % rank: i for i, d in enumerate(call["dims"])})


def _transpose(call):
    rank = len(call.specs[0].shape)
    mapping = {d: d for d in range(rank)}
    if call.name == "t":
        a, b = (0, 1) if rank == 2 else (0, 0)
    else:
        a, b = (call["dim0"] % rank, call["dim1"] % rank) if rank else (0, 0)
    if rank:
        mapping[a], mapping[b] = b, a
    return _kept(call, mapping)


def _squeezed_dims(call):
    """The dimensions that the whole tensor loses: a part may have one element along others too."""
    shape = call.specs[0].shape
    rank = len(shape)
    if call.overload == "default":
        return {d for d in range(rank) if shape[d] == 1}
    dims = call["dim"]
    dims = dims if isinstance(dims, (list, tuple)) else [dims]
    return {d % rank for d in dims if rank and shape[d % rank] == 1}


def _squeeze(call):
    rank, gone = len(call.specs[0].shape), _squeezed_dims(call)
    return _kept(call, {d: d - sum(g < d for g in gone) for d in range(rank) if d not in gone})


def _unsqueeze(call):
    rank = len(call.specs[0].shape)
    place = call["dim"] % (rank + 1)
    return _kept(call, {d: d + (d >= place) for d in range(rank)})


def _same_dims(call):
    return _kept(call, {d: d for d in range(len(call.specs[0].shape))})


def _but_dim(name="dim"):
    """A rule for operators that leave all dimensions but one (or some) alone."""

    def rule(call):
        shape = call.specs[0].shape
        rank = len(shape)
        dims = call[name]
        dims = dims if isinstance(dims, (list, tuple)) else [dims]
        touched = {d % rank for d in dims} if rank else set()
        return _kept(call, {d: d for d in range(rank) if d not in touched})

    return rule


def _select(call):
    rank = len(call.specs[0].shape)
    place = call["dim"] % rank
    return _kept(call, {d: d - (d > place) for d in range(rank) if d != place})


def _slice(call):
    shape = call.specs[0].shape
    dim = call["dim"] % len(shape)
    whole = call.out_shapes[0][dim] == shape[dim]
    return _kept(call, {d: d for d in range(len(shape)) if d != dim or whole})


def _select_backward(call):
    rank = len(call.out_shapes[0])
    place = call["dim"] % rank
    return _kept(call, {d: d + (d >= place) for d in range(rank - 1)})


def _slice_backward(call):
    rank = len(call.out_shapes[0])
    place = call["dim"] % rank
    return _kept(call, {d: d for d in range(rank) if d != place})


def _unfold(call):
    rank = len(call.specs[0].shape)
    place = call["dimension"] % rank if rank else None
    return _kept(call, {d: d for d in range(rank) if d != place})


def _stack(call):
    rank = len(call.out_shapes[0])
    place = call["dim"] % rank
    return _kept(call, {d: d + (d >= place) for d in range(rank - 1)})


def _cat(call):
    rank = len(call.out_shapes[0])
    if any(len(spec.shape) != rank for spec in call.specs):
        return []  # empty vectors, which are left out
    place = call["dim"] % rank
    return _kept(call, {d: d for d in range(rank) if d != place})


def _new_like(call):
    """A new tensor lies as the old one where it has its shape."""
    if call.specs[0].shape != call.out_shapes[0]:
        return []
    return [call.way(Shard(d), self=Shard(d)) for d in range(len(call.out_shapes[0]))]


def _own_size(name, tail=None):
    """Give the local operator the local shape of its result."""

    def adjust(call, plan, args, kwargs):
        from rushlight.distributed.tensor._dispatch import local_shape

        if name not in call.names:
            return args, kwargs, call.func
        index = call.names.index(name)
        if index < len(args):
            args[index] = local_shape(plan.outputs[0])
        else:
            kwargs[name] = local_shape(plan.outputs[0])
        return args, kwargs, call.func

    return adjust


def _view_locally(call, plan, args, kwargs):
    """The local shape; a part that was moved may lie in other strides than the whole."""
    args, kwargs, run = _own_size("size")(call, plan, args, kwargs)
    if call.overload != "dtype" and not args[0].is_contiguous():
        try:
            return [run(*args, **kwargs)], {}, lambda made: made
        except RuntimeError:
            args[0] = args[0].contiguous()
    return args, kwargs, run


def _squeeze_locally(call, plan, args, kwargs):
    return [args[0], sorted(_squeezed_dims(call))], {}, torch.ops.aten.squeeze.dims


def _slice_whole(call, plan, args, kwargs):
    """Where all of a dimension is kept its local bounds are the part's."""
    dim = call["dim"] % len(call.specs[0].shape)
    if any(p.is_shard(dim) for p in plan.inputs[0].placements):
        return (
            [args[0]],
            {},
            lambda part: part.detach().alias() if hasattr(part, "alias") else part.view(part.shape),
        )
    return args, kwargs, call.func


RULES = {
    "view": _view,
    "_unsafe_view": _view,
    "expand": _expand,
    "permute": _permute,
    "transpose": _transpose,
    "t": _transpose,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "detach": _same_dims,
    "alias": _same_dims,
    "view_as_complex": _same_dims,
    "view_as_real": _same_dims,
    "_conj": _same_dims,
    "_neg_view": _same_dims,
    "select": _select,
    "slice": _slice,
    "split": _but_dim(),
    "split_with_sizes": _but_dim(),
    "unbind": _select,
    "unfold": _unfold,
    "select_backward": _select_backward,
    "slice_backward": _slice_backward,
    "_split_backward": _slice_backward,
    "_unbind_backward": _select_backward,
    "stack": _stack,
    "cat": _cat,
    "flip": _but_dim("dims"),
    "new_empty": _new_like,
    "new_zeros": _new_like,
    "new_ones": _new_like,
    "new_full": _new_like,
    "new_empty_strided": _new_like,
}
ADJUSTMENTS = {
    "squeeze": _squeeze_locally,
    "view": _view_locally,
    "_unsafe_view": _view_locally,
    "expand": _own_size("size"),
    "slice": _slice_whole,
    "select_backward": _own_size("input_sizes"),
    "slice_backward": _own_size("input_sizes"),
    "_split_backward": _own_size("input_sizes"),
    "_unbind_backward": _own_size("input_sizes"),
    "new_empty": _own_size("size"),
    "new_zeros": _own_size("size"),
    "new_ones": _own_size("size"),
    "new_full": _own_size("size"),
}
