"""`segment_reduce`: sums, means, extremes or products over runs of rows."""

import rushlight as torch
from rushlight._command.names import show_from
from rushlight._operators.overridable import overridable

_REDUCE = {
    "sum": "sum",
    "mean": "sum",
    "max": "amax",
    "amax": "amax",
    "min": "amin",
    "amin": "amin",
    "prod": "prod",
}
_IDENTITY = {"sum": 0.0, "amax": -float("inf"), "amin": float("inf"), "prod": 1.0}


@overridable
def segment_reduce(
    data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None
):
    """Reduces along `axis` the segments of those `lengths`, or between neighbouring `offsets`.

    The dimensions before `axis` may each have their own lengths. An empty segment gives `initial`, which is
    the operation's neutral element unless given (NaN for a mean).
    """
    if reduce not in _REDUCE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if not data.is_floating_point():
        name = data.type().rpartition(".")[2].removesuffix("Tensor")
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{name}'")
    axis = axis + data.dim() if axis < 0 else axis
    lengths = offsets.diff(dim=-1) if lengths is None else lengths
    _check(data, lengths, axis, unsafe)
    return _reduce_segments(data, reduce, lengths, axis, initial)


def _check(data, lengths, axis, unsafe):
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype is torch.bool:
        raise NotImplementedError(f"segment_reduce(): lengths must be integers, got {lengths.dtype}")
    if axis != lengths.dim() - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}."
        )
    if lengths.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): lengths of shape {list(lengths.shape)} do not fit data of shape "
            f"{list(data.shape)}"
        )
    if unsafe:
        return
    if bool((lengths < 0).any()):
        raise RuntimeError("lengths contains negative value!")
    if bool((lengths.sum(-1) != data.size(axis)).any()):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) "
            "when !unsafe."
        )


class _Extreme(torch.autograd.Function):
    """The extremes of segments. Equal elements share the gradient, and so do the NaN of a segment."""

    generate_vmap_rule = True

    @staticmethod
    def forward(data, segment, start, axis, operation):
        return start.scatter_reduce(axis, segment, data, operation, include_self=True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        data, segment, _, ctx.axis, _ = inputs
        ctx.save_for_backward(data, segment, output)

    @staticmethod
    def backward(ctx, grad):
        data, segment, output = ctx.saved_tensors
        found = output.gather(ctx.axis, segment)
        chosen = ((data == found) | (data.isnan() & found.isnan())).to(grad.dtype)
        count = torch.zeros_like(output).scatter_add(ctx.axis, segment, chosen).clamp(min=1)
        return chosen * (grad / count).gather(ctx.axis, segment), None, None, None, None


class _Product(torch.autograd.Function):
    """The products of segments. The gradient of a zero or NaN is the product of the others, not a
    quotient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(data, segment, start, axis):
        return start.scatter_reduce(axis, segment, data, "prod", include_self=True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        data, segment, start, ctx.axis = inputs
        ctx.save_for_backward(data, segment, start, output)

    @staticmethod
    def backward(ctx, grad):
        data, segment, start, output = ctx.saved_tensors

        def of_segments(marks):  # for each element how many of its segment have the mark
            count = torch.zeros_like(output).scatter_add(ctx.axis, segment, marks.to(output.dtype))
            return count.gather(ctx.axis, segment)

        zero, nan = data == 0, data.isnan()
        plain = data.masked_fill(zero | nan, 1)
        others = start.scatter_reduce(ctx.axis, segment, plain, "prod", include_self=True).gather(
            ctx.axis, segment
        )
        others = others.masked_fill(of_segments(zero) > zero, 0).masked_fill(
            of_segments(nan) > nan, float("nan")
        )
        quotient = output.gather(ctx.axis, segment) / data
        return grad.gather(ctx.axis, segment) * torch.where(zero | nan, others, quotient), None, None, None


def _reduce_segments(data, reduce, lengths, axis, initial):
    operation = _REDUCE[reduce]
    rows, count = data.size(axis), lengths.size(-1)
    trailing = (1,) * (data.dim() - axis - 1)
    start = _IDENTITY[operation] if initial is None else float(initial)
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    result = data.new_full(shape, start)
    if count == 0:
        return result
    # The segment of each row; rows behind the last one's end take no part.
    ends = lengths.to(torch.int64).cumsum(-1)
    row = torch.arange(rows, device=data.device).expand(*lengths.shape[:-1], rows).contiguous()
    segment = torch.searchsorted(ends, row, right=True)
    inside = (segment < count).reshape(*segment.shape, *trailing)
    neutral = data if bool(inside.all()) else torch.where(inside, data, _IDENTITY[operation])
    segment = segment.clamp(max=count - 1).reshape(*segment.shape, *trailing).expand(data.shape)
    if operation in ("amax", "amin"):
        return _Extreme.apply(neutral, segment, result, axis, operation)
    if operation == "prod":
        return _Product.apply(neutral, segment, result, axis)
    result = result.scatter_reduce(axis, segment, neutral, operation, include_self=True)
    if reduce != "mean":
        return result
    sizes = lengths.reshape(*lengths.shape, *trailing).to(data.dtype)
    empty = sizes == 0
    mean = result / sizes.masked_fill(empty, 1)
    return mean.masked_fill(empty, float("nan")) if initial is None else mean


_segment_reduce = segment_reduce


show_from("", segment_reduce)
