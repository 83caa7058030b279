"""Normalisation, attention, embeddings, losses and pooling."""

from typing import Any

from rushlight.distributed.tensor._ops._cutting import may_cut_whole_inputs
from rushlight.distributed.tensor.placement_types import Partial, Shard

_SUM = Partial("sum")


def _row_norm(call):
    """Rows are normalised by themselves: layer_norm and rms_norm."""
    outer = len(call.shape("input")) - len(call["normalized_shape"])
    return [call.way(*[Shard(d)] * len(call.out_metas), input=Shard(d)) for d in range(outer)]


def _row_norm_gradients(call):
    cut = len(call.shape("rstd"))
    rank = len(call.shape("grad"))
    rows = [d for d in range(min(cut, rank)) if call.shape("rstd")[d] == call.shape("grad")[d]]
    ways = []
    for d in rows:
        if call.shape("grad")[d] == 1:
            continue
        ways.append(
            call.way(Shard(d), _SUM, _SUM, grad=Shard(d), input=Shard(d), mean=Shard(d), rstd=Shard(d))
        )
    return ways


def _attention(call):
    """By example or by head, where queries and keys have as many."""
    query, key = call.shape("query"), call.shape("key")
    ways = []
    for d in range(len(query) - 2):
        if query[d] != key[d]:
            continue
        s = Shard(d)
        given: dict[str, Any] = {"query": s, "key": s, "value": s, "grad_out": s, "out": s, "logsumexp": s}
        mask = call.shape("attn_mask")
        if mask is not None:
            own = d - (len(query) - len(mask))
            given["attn_mask"] = Shard(own) if own >= 0 and mask[own] != 1 else None
        if call["dropout_p"]:
            continue
        ways.append(call.way(*[s] * len(call.out_metas), **given))
    return ways


@may_cut_whole_inputs
def _embedding(call):
    rank = len(call.shape("indices"))
    ways = [call.way(Shard(d), indices=Shard(d)) for d in range(rank)]
    ways.append(call.way(Shard(rank), weight=Shard(1)))
    ways.append(call.way(_SUM, weight=Shard(0)))
    return ways


def _embedding_of_own_rows(call, plan, args, kwargs):
    """Rows of a table that others hold are zero here: the sum over the processes has each once."""
    spec = plan.inputs[call.leaf("weight")]
    if not any(p.is_shard(0) for p in spec.placements):
        return args, kwargs, call.func
    from rushlight.distributed.tensor._dtensor_spec import local_shape_and_offset

    shape, offset = local_shape_and_offset(spec.shape, spec.mesh, spec.placements)
    weight, indices = args[0], args[1] - offset[0]
    elsewhere = (indices < 0) | (indices >= shape[0])
    if bool(((args[1] < 0) | (args[1] >= spec.shape[0])).any()):
        raise IndexError("index out of range in self")

    def run(*_, **__):
        if shape[0] == 0:
            return weight.new_zeros((*indices.shape, *weight.shape[1:]))
        found = call.func(weight, indices.masked_fill(elsewhere, 0))
        return found.masked_fill_(elsewhere.unsqueeze(-1), 0)

    return args, kwargs, run


@may_cut_whole_inputs
def _embedding_gradient(call):
    rank = len(call.shape("indices"))
    ways = [call.way(Shard(1), grad_output=Shard(rank))]
    if not call["scale_grad_by_freq"]:
        ways += [call.way(_SUM, grad_output=Shard(d), indices=Shard(d)) for d in range(rank)]
    return ways + [call.way(p, grad_output=p) for p in call.partials() if p == _SUM]


def _loss(call):
    """Losses that compare element by element: whole where they are averaged unevenly."""
    if call["reduction"] == 0:
        return _elements(call, lambda d: Shard(d))
    if call["reduction"] == 2:
        return _elements(call, lambda d: _SUM)
    even = [
        d
        for d, n in enumerate(call.shape("self"))
        if all(n % m == 0 for m in (*call.mesh.shape, call.mesh.size()))
    ]
    return [way for d, way in enumerate(_elements(call, lambda d: Partial("avg"))) if d in even]


def _elements(call, out):
    shape = call.shape("self")
    if any(spec.shape != shape for spec in call.specs):
        return []
    return [([out(d)], [Shard(d)] * len(call.specs)) for d in range(len(shape))]


def _spatial_dims(call):
    """How many of the last dimensions an operator on images moves a window or a border over."""
    digits = [int(d) for d in "123" if f"{d}d" in call.name]
    if digits:
        return digits[0]
    if "n" in call.names:
        return call["n"]
    if "kernel_size" in call.names:
        return len(call["kernel_size"])
    return len(call["padding" if "padding" in call.names else "pad"]) // 2


def on_images(call):
    """By example and by channel."""
    shape = call.specs[0].shape
    free = len(shape) - _spatial_dims(call)
    # A part may be without examples, but not without channels.
    dims = [d for d in range(free) if (d == 0 and free == 2) or _fills(shape[d], call.mesh)]
    return [([Shard(d)] * len(call.out_metas), [Shard(d)] * len(call.specs)) for d in dims]


def _fills(size, mesh):
    """Whether each process has something of a dimension that is cut."""
    return all(-(-size // n) * (n - 1) < size for n in (*mesh.shape, mesh.size()))


def own_input_sizes(call, plan, args, kwargs):
    from rushlight.distributed.tensor._dispatch import local_shape

    name = "input_sizes" if "input_sizes" in call.names else "input_size"
    args[call.names.index(name)] = local_shape(plan.outputs[0])
    return args, kwargs, call.func


RULES = {
    "native_layer_norm": _row_norm,
    "_fused_rms_norm": _row_norm,
    "_row_norm_gradients": _row_norm_gradients,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention,
    "embedding": _embedding,
    "embedding_dense_backward": _embedding_gradient,
    "mse_loss": _loss,
    "smooth_l1_loss": _loss,
    "huber_loss": _loss,
    "binary_cross_entropy": _loss,
    "binary_cross_entropy_with_logits": _loss,
}
ADJUSTMENTS = {"embedding": _embedding_of_own_rows}
