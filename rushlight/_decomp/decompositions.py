"""Shapes, factories and arithmetic in terms of the core ATen operators.

A function that cannot take its arguments apart returns `NotImplemented`; then the operator stays.
"""

import math

import rushlight as torch
from rushlight._functorch.functionalization import _emit as whole

from ._registry import register_decomposition

aten = torch.ops.aten  # type: ignore[attr-defined]

# --- shapes -----------------------------------------------------------------------------------------


def _swapped(x, a, b):
    order = list(range(x.dim()))
    if order:
        order[a], order[b] = order[b], order[a]
    return aten.permute.default(x, order)


@register_decomposition(aten.transpose.int)
def transpose(x, dim0, dim1):
    return _swapped(x, dim0, dim1)


@register_decomposition(aten.t)
def t(x):
    return _swapped(x, 0, 1) if x.dim() == 2 else aten.alias.default(x)


@register_decomposition(aten._unsafe_view)
def unsafe_view(x, size):
    return aten.view.default(x, size)


@register_decomposition(aten.detach)
def detach(x):
    return aten.alias.default(x)


@register_decomposition(aten.lift_fresh)
def lift_fresh(x):
    return aten.clone.default(x)


@register_decomposition(aten.squeeze.default)
def squeeze(x):
    return aten.squeeze.dims(x, [d for d, size in enumerate(x.shape) if size == 1])


@register_decomposition(aten.squeeze.dim)
def squeeze_dim(x, dim):
    return aten.squeeze.dims(x, [dim])


@register_decomposition(aten.split.Tensor)
def split(x, split_size, dim=0):
    size = x.shape[dim]
    if not split_size:
        return NotImplemented
    parts = [split_size] * (size // split_size) + ([size % split_size] if size % split_size else [])
    return aten.split_with_sizes.default(x, parts or [0], dim)


@register_decomposition(aten.unsafe_split_with_sizes)
def unsafe_split_with_sizes(x, split_sizes, dim=0):
    return aten.split_with_sizes.default(x, split_sizes, dim)


@register_decomposition(aten.unbind.int)
def unbind(x, dim=0):
    return [aten.select.int(x, dim, i) for i in range(x.shape[dim])]


@register_decomposition(aten.stack)
def stack(tensors, dim=0):
    dim = dim % (tensors[0].dim() + 1)
    return aten.cat.default([aten.unsqueeze.default(x, dim) for x in tensors], dim)


@register_decomposition(aten.roll)
def roll(x, shifts, dims=()):
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    if not dims:
        return roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims):
        size = x.shape[dim]
        if size:
            start = (size - shift) % size
            x = torch.cat([x.narrow(dim, start, size - start), x.narrow(dim, 0, start)], dim)
    return x


# --- tensors of numbers -----------------------------------------------------------------------------


def _constant(value):
    def made(size, *, dtype=None, layout=None, device=None, pin_memory=None):
        return aten.full.default(size, value, dtype=_dtype(dtype), device=device)

    return made


def _dtype(dtype):
    return torch.get_default_dtype() if dtype is None else dtype


def _like(value):
    def made(x, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        if x.layout != torch.strided:
            return NotImplemented
        return aten.full_like.default(x, value, dtype=dtype, device=device)

    return made


register_decomposition(aten.zeros)(_constant(0))
register_decomposition(aten.ones)(_constant(1))
register_decomposition(aten.zeros_like)(_like(0))
register_decomposition(aten.ones_like)(_like(1))


def _new(value):
    def made(x, size, *, dtype=None, layout=None, device=None, pin_memory=None):
        device = x.device if device is None else device
        return aten.full.default(size, value, dtype=x.dtype if dtype is None else dtype, device=device)

    return made


register_decomposition(aten.new_zeros)(_new(0))
register_decomposition(aten.new_ones)(_new(1))


@register_decomposition(aten.new_full)
def new_full(x, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    return _new(fill_value)(x, size, dtype=dtype, device=device)


@register_decomposition(aten.eye)
def eye(n, m=None, *, dtype=None, layout=None, device=None, pin_memory=None):
    rows = torch.arange(n, device=device).unsqueeze(-1)
    return (rows == torch.arange(n if m is None else m, device=device)).to(_dtype(dtype))


def _triangle(below):
    def made(x, diagonal=0):
        rows = torch.arange(x.shape[-2], device=x.device).unsqueeze(-1)
        columns = torch.arange(x.shape[-1], device=x.device)
        apart = columns - rows
        kept = apart <= diagonal if below else apart >= diagonal
        return torch.where(kept, x, torch.zeros((), dtype=x.dtype, device=x.device))

    return made


register_decomposition(aten.tril)(_triangle(True))
register_decomposition(aten.triu)(_triangle(False))


# --- arithmetic -------------------------------------------------------------------------------------


@register_decomposition(aten.pow.Tensor_Tensor)
def power(x, exponent):
    if isinstance(exponent, torch.Tensor) or not isinstance(x, torch.Tensor):
        return NotImplemented
    return whole(aten.pow.Tensor_Scalar, x, exponent)


def _comparison(name):
    packet = getattr(aten, name)

    @register_decomposition(packet.Tensor)
    def compare(x, other):
        if isinstance(other, torch.Tensor) or not isinstance(x, torch.Tensor):
            return NotImplemented
        return whole(packet.Scalar, x, other)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _comparison(_name)


@register_decomposition(aten.where.self)
def where(condition, x, other):
    numbers = [v for v in (x, other) if not isinstance(v, torch.Tensor)]
    if not numbers:
        return NotImplemented
    dtype, device = torch.result_type(x, other), condition.device
    x, other = (
        v if isinstance(v, torch.Tensor) else aten.scalar_tensor.default(v, dtype=dtype, device=device)
        for v in (x, other)
    )
    return aten.where.self(condition, x, other)


@register_decomposition(aten.addcmul.default)
def addcmul(x, tensor1, tensor2, *, value=1):
    return x + (tensor1 * tensor2 if value == 1 else value * tensor1 * tensor2)


@register_decomposition(aten.addcdiv.default)
def addcdiv(x, tensor1, tensor2, *, value=1):
    return x + value * (tensor1 / tensor2)


@register_decomposition([aten.lerp.Tensor, aten.lerp.Scalar])
def lerp(start, end, weight):
    if not isinstance(weight, torch.Tensor):
        if abs(weight) < 0.5:
            return start + weight * (end - start)
        return end - (end - start) * (1 - weight)
    near = weight.abs() >= 0.5
    base = torch.where(near, end, start)
    return torch.where(near, weight - 1, weight) * (end - start) + base


@register_decomposition(aten.floor_divide)
def floor_divide(x, other):
    return torch.div(x, other, rounding_mode="floor")


@register_decomposition(aten.positive)
def positive(x):
    return aten.alias.default(x)


@register_decomposition(aten.frac)
def frac(x):
    return x - x.trunc()


@register_decomposition(aten.clamp_min.default)
def clamp_min(x, min):
    return aten.clamp.default(x, min)


@register_decomposition(aten.clamp_max.default)
def clamp_max(x, max):
    return aten.clamp.default(x, None, max)


@register_decomposition(aten.exp2)
def exp2(x):
    return torch.pow(2, x)


@register_decomposition(aten.hypot)
def hypot(x, other):
    return (x * x + other * other).sqrt()


@register_decomposition(aten.logaddexp)
def logaddexp(x, other):
    if x.is_complex() or other.is_complex():
        return NotImplemented
    larger, smaller = torch.maximum(x, other), torch.minimum(x, other)
    apart = torch.where((larger == smaller) & larger.isinf(), torch.zeros_like(larger), smaller - larger)
    return larger + apart.exp().log1p()


@register_decomposition(aten.logaddexp2)
def logaddexp2(x, other):
    if x.is_complex() or other.is_complex():
        return NotImplemented
    return logaddexp(x * math.log(2), other * math.log(2)) / math.log(2)


@register_decomposition(aten.xlogy)
def xlogy(x, other):
    x, other = _tensors(x, other)
    product = x * other.log()
    nothing = (x == 0) & ~other.isnan()
    return torch.where(nothing, torch.zeros_like(product), product)


@register_decomposition(aten.special_xlog1py)
def xlog1py(x, other):
    x, other = _tensors(x, other)
    product = x * other.log1p()
    nothing = (x == 0) & ~other.isnan()
    return torch.where(nothing, torch.zeros_like(product), product)


def _tensors(x, other):
    like = x if isinstance(x, torch.Tensor) else other
    return tuple(
        v if isinstance(v, torch.Tensor) else torch.full((), v, dtype=like.dtype, device=like.device)
        for v in (x, other)
    )


@register_decomposition(aten.heaviside)
def heaviside(x, values):
    return torch.where(x == 0, values, (x > 0).to(x.dtype))


@register_decomposition(aten.sgn)
def sgn(x):
    return NotImplemented if x.is_complex() else aten.sign.default(x)


@register_decomposition(aten.isfinite)
def isfinite(x):
    if x.is_complex():
        return NotImplemented
    if not x.is_floating_point():
        return torch.full_like(x, True, dtype=torch.bool)
    return ~(x.isinf() | x.isnan())


@register_decomposition(aten.isposinf)
def isposinf(x):
    return x == math.inf if x.is_floating_point() else torch.full_like(x, False, dtype=torch.bool)


@register_decomposition(aten.isneginf)
def isneginf(x):
    return x == -math.inf if x.is_floating_point() else torch.full_like(x, False, dtype=torch.bool)


@register_decomposition(aten.nan_to_num)
def nan_to_num(x, nan=None, posinf=None, neginf=None):
    if x.is_complex():
        return NotImplemented
    if not x.is_floating_point():
        return x.clone()
    limits = torch.finfo(x.dtype)
    nan = 0.0 if nan is None else nan
    posinf = limits.max if posinf is None else posinf
    neginf = limits.min if neginf is None else neginf
    made = torch.where(x != x, nan, x)
    made = torch.where(x == math.inf, posinf, made)
    return torch.where(x == -math.inf, neginf, made)


@register_decomposition(aten.sinc)
def sinc(x):
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(torch.get_default_dtype())
    angle = x * math.pi
    return torch.where(x == 0, torch.ones_like(angle), angle.sin() / angle)


@register_decomposition(aten.logit)
def logit(x, eps=None):
    if eps is not None:
        x = x.clamp(eps, 1 - eps)
    return (x / (1 - x)).log()


@register_decomposition(aten.special_entr)
def entr(x):
    logged = -x * x.log()
    made = torch.where(x > 0, logged, torch.where(x == 0, torch.zeros_like(logged), -math.inf))
    return torch.where(x != x, x, made)


@register_decomposition([aten.masked_fill.Tensor, aten.masked_fill.Scalar])
def masked_fill(x, mask, value):
    if not isinstance(value, torch.Tensor):
        value = aten.scalar_tensor.default(value, dtype=x.dtype, device=x.device)
    return torch.where(mask, value.to(x.dtype), x)


# --- sums and products ------------------------------------------------------------------------------


@register_decomposition(aten.sum.default)
def sum_all(x, *, dtype=None):
    return aten.sum.dim_IntList(x, [], dtype=dtype)


@register_decomposition(aten.nansum)
def nansum(x, dim=None, keepdim=False, *, dtype=None):
    return torch.where(x.isnan(), torch.zeros_like(x), x).sum(dim, keepdim, dtype=dtype)


@register_decomposition([aten.all.default])
def all_of(x):
    return _truth(~aten.any.default(~x.to(torch.bool)), x)


@register_decomposition([aten.all.dim, aten.all.dims])
def all_along(x, dim=None, keepdim=False):
    there = ~x.to(torch.bool)
    made = aten.any.dim(there, dim, keepdim) if isinstance(dim, int) else aten.any.dims(there, dim, keepdim)
    return _truth(~made, x)


def _truth(made, x):
    return made.to(torch.uint8) if x.dtype == torch.uint8 else made


@register_decomposition(aten.count_nonzero)
def count_nonzero(x, dim=None):
    there = (x != 0).to(torch.int64)
    return there.sum() if dim is None else there.sum(dim)


@register_decomposition(aten.aminmax)
def aminmax(x, *, dim=None, keepdim=False):
    dims = [] if dim is None else [dim]
    return aten.amin.default(x, dims, keepdim), aten.amax.default(x, dims, keepdim)


@register_decomposition(aten.std.correction)
def std(x, dim=None, *, correction=None, keepdim=False):
    return torch.var(x, dim, correction=1 if correction is None else correction, keepdim=keepdim).sqrt()


@register_decomposition(aten.var_mean.correction)
def var_mean(x, dim=None, *, correction=None, keepdim=False):
    spread = torch.var(x, dim, correction=1 if correction is None else correction, keepdim=keepdim)
    return spread, torch.mean(x, dim, keepdim)


@register_decomposition(aten.std_mean.correction)
def std_mean(x, dim=None, *, correction=None, keepdim=False):
    spread, mean = var_mean(x, dim, correction=correction, keepdim=keepdim)
    return spread.sqrt(), mean


@register_decomposition(aten.logsumexp)
def logsumexp(x, dim, keepdim=False):
    if x.is_complex() or not x.numel():
        return NotImplemented
    if not x.is_floating_point():
        x = x.to(torch.get_default_dtype())
    dims = [dim] if isinstance(dim, int) else list(dim)
    largest = aten.amax.default(x, dims, True)
    largest = torch.where(largest.abs() == math.inf, torch.zeros_like(largest), largest)
    made = (x - largest).exp().sum(dims, True).log() + largest
    return made if keepdim else aten.squeeze.dims(made, dims or list(range(x.dim())))


@register_decomposition(aten.linalg_vector_norm)
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    x = x if dtype is None else x.to(dtype)
    if x.is_complex() or ord != 2:
        return NotImplemented
    return torch.sum(x * x, dim, keepdim).sqrt()


@register_decomposition(aten.baddbmm.default)
def baddbmm(x, batch1, batch2, *, beta=1, alpha=1):
    made = torch.bmm(batch1, batch2)
    made = made if alpha == 1 else made * alpha
    if beta == 0:
        return made
    return (x if beta == 1 else x * beta) + made


@register_decomposition(aten.mv)
def mv(x, vec):
    return (x * vec).sum(1)


@register_decomposition(aten.dot)
def dot(x, tensor):
    return (x * tensor).sum()


@register_decomposition(aten.index_add)
def index_add(x, dim, index, source, *, alpha=1):
    if not x.dim():
        return NotImplemented
    places = [None] * (dim % x.dim()) + [index]
    source = source if alpha == 1 else source * alpha
    return whole(aten.index_put.default, x, places, source, True)


@register_decomposition(aten.index_copy)
def index_copy(x, dim, index, source):
    if not x.dim():
        return NotImplemented
    return whole(aten.index_put.default, x, [None] * (dim % x.dim()) + [index], source)


@register_decomposition(aten.take)
def take(x, index):
    return x.reshape(-1)[index]
