"""What takes more than redistribution: random numbers, values read by Python, optimizers' fused steps, losses
whose weights are summed over all processes."""

import rushlight as torch
from rushlight.distributed.tensor.placement_types import Partial, Replicate, Shard

_SUM = Partial("sum")


def random(call):
    """Each process keeps its part of the numbers that one process would draw."""
    shape = call.out_shapes[0] if call.out_metas else call.specs[0].shape
    if any(spec.shape not in (shape, ()) for spec in call.specs):
        return []
    return [
        ([Shard(d)] * len(call.out_metas), [Shard(d) if len(s.shape) else Replicate() for s in call.specs])
        for d in range(len(shape))
    ]


def draw_own_part(call, plan, args, kwargs):
    from rushlight.distributed.tensor._random import own_part

    target = plan.outputs[0]
    tensors = [(k, a) for k, a in enumerate(args) if isinstance(a, torch.Tensor)]
    if len(tensors) > 1 or call.traits.batching != "random like":  # values are read, not only a shape
        return _draw_from_whole(call, plan, args, kwargs)

    def run(*_, **__):
        whole = torch.empty(tuple(target.shape), dtype=args[0].dtype)
        given = [whole, *args[1:]]
        drawn = own_part(lambda: call.func(*given, **kwargs), call.mesh, target.placements)
        return args[0].copy_(drawn) if call.writes or call.form == 1 else drawn

    return args, kwargs, run


def _draw_from_whole(call, plan, args, kwargs):
    """Numbers whose distribution is given by tensors: those are gathered first."""
    from rushlight.distributed.tensor._dispatch import locals_of
    from rushlight.distributed.tensor._dtensor_spec import DTensorSpec
    from rushlight.distributed.tensor._random import own_part

    whole = (Replicate(),) * call.mesh.ndim
    gathered = iter(locals_of(call, [DTensorSpec(s.mesh, whole, s.tensor_meta) for s in call.specs]))
    given = [next(gathered).clone() if isinstance(a, torch.Tensor) else a for a in args]
    writes = call.writes or call.form == 1

    def run(*_, **__):
        drawn = own_part(lambda: call.func(*given, **kwargs), call.mesh, plan.outputs[0].placements)
        return args[0].copy_(drawn) if writes else drawn

    return args, kwargs, run


def _item(call):
    tensor = call.leaves[0]
    return call.func(tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor)


def _equal(call):
    from rushlight.distributed import _functional_collectives as collectives

    a, b = call.specs
    if None in call.specs:
        return NotImplemented
    if a.shape != b.shape or any(p.is_partial() for s in call.specs for p in s.placements):
        if a.shape != b.shape:
            return False
        return call.func(*[_whole(leaf) for leaf in call.leaves])
    if a.placements != b.placements:
        return call.func(*[_whole(leaf) for leaf in call.leaves])
    same = torch.tensor(int(call.func(*[leaf._local_tensor for leaf in call.leaves])))
    for i, placement in enumerate(a.placements):
        if placement.is_shard():
            same = collectives.all_reduce(same, "min", call.mesh.get_group(i))
    return bool(same)


def _whole(leaf):
    return leaf.full_tensor() if hasattr(leaf, "full_tensor") else leaf


def _fused_step(call):
    """A fused optimizer step is element by element: gradients and states lie as the parameters do."""
    from rushlight.distributed.tensor._dtensor_spec import DTensorSpec
    from rushlight.distributed.tensor._redistribute import redistribute_local_tensor

    parameters = call["self"]

    def local(value, k=None):
        spec = getattr(value, "_spec", None)
        if spec is None:
            return value
        wanted = None if k is None else getattr(parameters[k], "_spec", None)
        if wanted is None or not spec.shape or spec.placements == wanted.placements:
            return value._local_tensor
        target = DTensorSpec(spec.mesh, wanted.placements, spec.tensor_meta)
        return redistribute_local_tensor(value._local_tensor, spec, target)

    args = [
        [local(v, k) for k, v in enumerate(arg)] if isinstance(arg, (list, tuple)) else local(arg)
        for arg in call.args
    ]
    kwargs = {
        name: local(value) if isinstance(value, torch.Tensor) else value
        for name, value in call.kwargs.items()
    }
    return call.func(*args, **kwargs)


def _nll_loss(call):
    """A batch cut over processes: the sum of its parts' losses, over the sum of their weights."""
    from rushlight.distributed import _functional_collectives as collectives
    from rushlight.distributed.tensor._dispatch import spread

    held = call.specs[0]
    if None in call.specs:
        return NotImplemented
    if not any(p.is_shard(0) for p in held.placements) or len(held.shape) < 2 or len(call.specs[1].shape) < 1:
        return NotImplemented
    if any(not (p.is_shard(0) or p.is_replicate()) for p in held.placements):
        return NotImplemented
    reduction = call["reduction"]
    self, target = call.leaves[0], call.leaves[1]
    weight = call["weight"]
    if weight is not None and hasattr(weight, "full_tensor"):
        weight = weight.full_tensor()
    aligned = target.redistribute(placements=held.placements) if hasattr(target, "_spec") else None
    if aligned is None:
        return NotImplemented
    local = (self._local_tensor, aligned._local_tensor, weight)
    if reduction == 0:
        loss, total = call.func(*local, 0, call["ignore_index"])
        return (
            spread(loss, held, held.placements, call.specs[1].shape),
            spread(total, held, [Replicate()] * call.mesh.ndim, ()),
        )
    loss, total = call.func(*local, 2, call["ignore_index"])
    placements = [_SUM if p.is_shard() else p for p in held.placements]
    if reduction == 1:
        for i, p in enumerate(placements):
            if p.is_partial():
                total = collectives.all_reduce(total, "sum", call.mesh.get_group(i))
        loss = loss / total
    whole = [Replicate()] * call.mesh.ndim
    return spread(loss, held, placements, ()), spread(total, held, whole, ())


def _nll_loss_backward(call):
    sizes = call["input_sizes"]
    target = call.leaves[call.leaf("target")]
    if not hasattr(target, "_spec") or not any(p.is_shard(0) for p in target.placements):
        return NotImplemented
    return NotImplemented if len(sizes) < 2 else _nll_gradient(call, target, sizes)


def _nll_gradient(call, target, sizes):
    from rushlight.distributed.tensor._dispatch import spread

    spec = target._spec
    if any(not (p.is_shard(0) or p.is_replicate()) for p in spec.placements):
        return NotImplemented
    whole = [Replicate()] * call.mesh.ndim
    gradient, total = call["grad_output"], call["total_weight"]
    wanted = spec.placements if gradient.dim() else whole
    gradient = (
        gradient.redistribute(placements=wanted)._local_tensor if hasattr(gradient, "_spec") else gradient
    )
    total = total.redistribute(placements=whole)._local_tensor if hasattr(total, "_spec") else total
    weight = None if call["weight"] is None else _whole(call["weight"])
    local = [target._local_tensor.shape[0], *sizes[1:]]
    found = call.func(
        gradient, target._local_tensor, weight, call["reduction"], call["ignore_index"], total, local
    )
    return spread(found, spec, spec.placements, sizes)


def _no_strides(call):
    raise NotImplementedError(
        f"{call.func}: a spread tensor has no memory of its own to be seen in other strides. Use view, "
        "slice or "
        "transpose, or do it on to_local(); writing to a view needs such a step when gradients are recorded"
    )


HANDLERS = {
    "as_strided": _no_strides,
    "_set_strides_": _no_strides,
    "_local_scalar_dense": _item,
    "equal": _equal,
    "_fused_sgd_": _fused_step,
    "_fused_adam_": _fused_step,
    "_fused_adamw_": _fused_step,
    "_fused_update_": _fused_step,
    "nll_loss_forward": _nll_loss,
    "nll_loss_backward": _nll_loss_backward,
}
RULES: dict = {}
ADJUSTMENTS: dict = {}
