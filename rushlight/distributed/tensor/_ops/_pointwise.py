"""Operators that compute element by element."""

import rushlight as torch
from rushlight.distributed.tensor.placement_types import Partial, Shard

ADJUSTMENTS: dict = {}

_SCALED_BY_OTHER = {"mul", "div"}


def pointwise(call):
    """Along any dimension of the result; what is broadcast there is whole."""
    shape = call.out_shapes[0] if call.out_metas else call.specs[0].shape
    ways = []
    for dim in range(len(shape)):
        if shape[dim] == 1:
            continue
        ways.append(_along(call, dim, len(shape)))
    return ways + _of_sums(call)


def _along(call, dim, rank):
    inputs = []
    for spec in call.specs:
        own = dim - (rank - len(spec.shape))
        inputs.append(Shard(own) if own >= 0 and spec.shape[own] != 1 else call.way()[1][0])
    return [Shard(dim)] * max(len(call.out_metas), 1), inputs


def _of_sums(call):
    ways = []
    for partial in call.partials():
        if partial.reduce_op not in ("sum", "avg"):
            if (call.traits.same_elements or call.name == "_to_copy") and len(call.specs) == 1:
                ways.append(([partial], [partial]))
            continue
        if _is_additive(call):
            ways.append(([partial], [partial] * len(call.specs)))
        elif call.name in _SCALED_BY_OTHER and call["self" if call.name == "mul" else "other"] is not None:
            ways += _scaled(call, partial)
    return ways


def _is_additive(call):
    """Whether f(a + b) = f(a) + f(b): all operands are tensors, and nothing is rounded to integers."""
    if call.traits.tangent != "linear" and not call.traits.same_elements:
        return False
    operands = [a.name for a in call.func._schema.arguments if str(a.type) == "Tensor"]
    if any(call.leaf(name) is None for name in operands):
        return False  # a number stands for a tensor
    dtypes = {spec.dtype for spec in call.specs}
    rounds = any(map(_has_fractions, dtypes)) and not all(_has_fractions(m.dtype) for m in call.out_metas)
    return not rounds and torch.bool not in dtypes


def _has_fractions(dtype):
    return dtype.is_floating_point or dtype.is_complex


def _scaled(call, partial: Partial):
    if call.name == "div" and "rounding_mode" in call.names and call["rounding_mode"] is not None:
        return []
    ways = []
    if call.leaf("self") is not None:
        ways.append(call.way(partial, self=partial))
    if call.name == "mul" and call.leaf("other") is not None:
        ways.append(call.way(partial, other=partial))
    return ways


RULES: dict = {}  # all that are elementwise by their records
