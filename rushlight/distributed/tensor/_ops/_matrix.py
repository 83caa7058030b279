"""Products of matrices, and convolutions."""

from rushlight.distributed.tensor._ops._cutting import may_cut_whole_inputs
from rushlight.distributed.tensor.placement_types import Partial, Shard

_SUM = Partial("sum")


@may_cut_whole_inputs
def _mm(call):
    rows = call.way(Shard(0), self=Shard(0))
    columns = call.way(Shard(1), mat2=Shard(1))
    inner = call.way(_SUM, self=Shard(1), mat2=Shard(0))
    return [rows, columns, inner, *_terms(call, "self", "mat2")]


def _terms(call, *factors):
    return [call.way(p, **{name: p}) for p in call.partials() if p.reduce_op == "sum" for name in factors]


def _bias(call, dim, rank):
    """Where the summand of a product that is cut along `dim` lies."""
    shape = call.shape("self")
    own = dim - (rank - len(shape))
    return Shard(own) if own >= 0 and shape[own] != 1 else None


@may_cut_whole_inputs
def _addmm(call):
    return [
        call.way(Shard(0), mat1=Shard(0), self=_bias(call, 0, 2)),
        call.way(Shard(1), mat2=Shard(1), self=_bias(call, 1, 2)),
        *[call.way(_SUM, self=_SUM, mat1=Shard(1), mat2=Shard(0)) for p in call.partials() if p == _SUM],
    ]


@may_cut_whole_inputs
def _bmm(call):
    return [
        call.way(Shard(0), self=Shard(0), mat2=Shard(0)),
        call.way(Shard(1), self=Shard(1)),
        call.way(Shard(2), mat2=Shard(2)),
        call.way(_SUM, self=Shard(2), mat2=Shard(1)),
        *_terms(call, "self", "mat2"),
    ]


@may_cut_whole_inputs
def _baddbmm(call):
    return [
        call.way(Shard(0), batch1=Shard(0), batch2=Shard(0), self=_bias(call, 0, 3)),
        call.way(Shard(1), batch1=Shard(1), self=_bias(call, 1, 3)),
        call.way(Shard(2), batch2=Shard(2), self=_bias(call, 2, 3)),
    ]


@may_cut_whole_inputs
def _mv(call):
    return [call.way(Shard(0), self=Shard(0)), call.way(_SUM, self=Shard(1), vec=Shard(0))]


@may_cut_whole_inputs
def _dot(call):
    return [call.way(_SUM, self=Shard(0), other=Shard(0), tensor=Shard(0))]


@may_cut_whole_inputs
def _convolution(call):
    return [call.way(Shard(0), input=Shard(0))] if len(call.shape("input")) > 2 else []


def _conv_input_gradient(call):
    return [call.way(Shard(0), grad_output=Shard(0))]


def _conv_weight_gradient(call):
    return [call.way(_SUM, grad_output=Shard(0), input=Shard(0))]


def _own_input_sizes(call, plan, args, kwargs):
    from rushlight.distributed.tensor._dispatch import local_shape

    args[call.names.index("input_sizes")] = local_shape(plan.outputs[0])
    return args, kwargs, call.func


RULES = {
    "mm": _mm,
    "addmm": _addmm,
    "bmm": _bmm,
    "baddbmm": _baddbmm,
    "mv": _mv,
    "dot": _dot,
    "vdot": _dot,
    "convolution": _convolution,
    "_conv_input_gradient": _conv_input_gradient,
    "_conv_weight_gradient": _conv_weight_gradient,
}
ADJUSTMENTS = {"_conv_input_gradient": _own_input_sizes}
