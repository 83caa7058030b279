"""Cross entropy of logits that are cut along the classes, without gathering them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import rushlight as torch
from rushlight.distributed import _functional_collectives as collectives
from rushlight.distributed.tensor._dispatch import Settings, spread
from rushlight.distributed.tensor._dtensor_spec import (
    DTensorSpec,
    TensorMeta,
    contiguous_stride,
    local_shape_and_offset,
)
from rushlight.distributed.tensor.placement_types import Replicate, Shard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["loss_parallel"]


@dataclass(frozen=True)
class _OfClasses(Replicate):
    """Marks the sum of weights of a loss whose logits were cut along the classes."""


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """Inside, `cross_entropy` of logits cut along the classes communicates a few numbers per example only.

    The backward pass has to run inside, too. Targets and weights may be plain tensors, the same everywhere.
    """
    before = dict(Settings.handlers)
    Settings.handlers.update(_HANDLERS)
    try:
        yield
    finally:
        Settings.handlers.clear()
        Settings.handlers.update(before)


def _classes_cut(spec, dim):
    """The mesh dimension that cuts the classes, if the others do not cut at all; else None."""
    cutting = [i for i, p in enumerate(spec.placements) if p.is_shard(dim)]
    others = [p for i, p in enumerate(spec.placements) if i not in cutting]
    return cutting[0] if len(cutting) == 1 and all(p.is_replicate() for p in others) else None


def _log_softmax(call):
    x, spec = call.leaves[0], call.specs[0]
    dim = call["dim"] % len(spec.shape)
    i = _classes_cut(spec, dim)
    if i is None:
        return NotImplemented
    group, local = call.mesh.get_group(i), x._local_tensor
    if call["half_to_float"]:
        local = local.float()
    peak = local.amax(dim, keepdim=True) if local.shape[dim] else local.new_full(_one(local, dim), -torch.inf)
    shifted = local - collectives.all_reduce(peak, "max", group)
    total = collectives.all_reduce(shifted.exp().sum(dim, keepdim=True), "sum", group)
    return spread(shifted - total.log(), spec, spec.placements)


def _one(tensor, dim):
    return [1 if d == dim else size for d, size in enumerate(tensor.shape)]


def _log_softmax_backward(call):
    gradient, output = call.leaves
    spec = output._spec
    dim = call["dim"] % len(spec.shape)
    i = _classes_cut(spec, dim)
    if i is None:
        return NotImplemented
    g = gradient.redistribute(placements=spec.placements)._local_tensor
    total = collectives.all_reduce(g.sum(dim, keepdim=True), "sum", call.mesh.get_group(i))
    return spread(g - output._local_tensor.exp() * total, spec, spec.placements)


def _whole(value):
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def _own_targets(target, spec, dim, ignored):
    """Targets as positions in this process's classes, and which of them are here and count."""
    shape, offset = local_shape_and_offset(spec.shape, spec.mesh, spec.placements)
    local = target - offset[dim]
    here = (local >= 0) & (local < shape[dim]) & (target != ignored)
    return local.masked_fill(~here, 0).unsqueeze(dim), here


def _weights(target, weight, ignored, dtype):
    counts = target != ignored
    if weight is None:
        return counts.to(dtype)
    return weight[target.masked_fill(~counts, 0)].masked_fill(~counts, 0)


def _nll_loss(call):
    spec = call.specs[0]
    dim = 0 if len(spec.shape) == 1 else 1
    i = _classes_cut(spec, dim)
    if i is None:
        return NotImplemented
    ignored, reduction = call["ignore_index"], call["reduction"]
    target = _whole(call["target"])
    weight = _weights(target, None if call["weight"] is None else _whole(call["weight"]), ignored, spec.dtype)
    at, here = _own_targets(target, spec, dim, ignored)
    local = call.leaves[0]._local_tensor
    picked = torch.zeros(target.shape, dtype=local.dtype)
    if local.shape[dim]:
        picked = -local.gather(dim, at).squeeze(dim).masked_fill(~here, 0)
    losses = collectives.all_reduce(picked, "sum", call.mesh.get_group(i)) * weight
    total = weight.sum()
    loss = losses if reduction == 0 else losses.sum() / total if reduction == 1 else losses.sum()
    whole = [Replicate()] * call.mesh.ndim
    marked = [_OfClasses() if k == i else Replicate() for k in range(call.mesh.ndim)]
    return spread(loss, spec, whole, loss.shape), spread(total, spec, marked, ())


def _nll_loss_backward(call):
    total = call["total_weight"]
    placements = getattr(total, "placements", ())
    if not any(isinstance(p, _OfClasses) for p in placements):
        return NotImplemented
    sizes, ignored, reduction = call["input_sizes"], call["ignore_index"], call["reduction"]
    dim = 0 if len(sizes) == 1 else 1
    cut = [Shard(dim) if isinstance(p, _OfClasses) else p for p in placements]
    gradient, target = _whole(call["grad_output"]), _whole(call["target"])
    weight = None if call["weight"] is None else _whole(call["weight"])
    scale = -_weights(target, weight, ignored, gradient.dtype) * gradient
    if reduction == 1:
        scale = scale / total._local_tensor
    meta = TensorMeta(torch.Size(sizes), contiguous_stride(sizes), gradient.dtype)
    spec = DTensorSpec(call.mesh, cut, meta)
    shape, _ = local_shape_and_offset(sizes, call.mesh, cut)
    at, here = _own_targets(target, spec, dim, ignored)
    local = torch.zeros(shape, dtype=gradient.dtype)
    if shape[dim]:
        local.scatter_add_(dim, at, scale.masked_fill(~here, 0).unsqueeze(dim))
    return spread(local, spec, cut)


_HANDLERS = {
    "_log_softmax": _log_softmax,
    "_log_softmax_backward_data": _log_softmax_backward,
    "nll_loss_forward": _nll_loss,
    "nll_loss2d_forward": _nll_loss,
    "nll_loss_backward": _nll_loss_backward,
}
