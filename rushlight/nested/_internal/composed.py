"""What functions that are made of others do with jagged nested tensors."""

import rushlight
from rushlight.nested._internal.nested_tensor import NestedTensor, plain
from rushlight.nested._internal.ops import call, check_same_cuts, inner, name_of, rule, wrap_dim

__all__ = ["call"]


def _sizes(sizes):
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else list(sizes)


@rule("view_as", "reshape_as", "expand_as")
def _as_another(func, x, other):
    return getattr(x, name_of(func).removesuffix("_as"))(*other.shape)


@rule("broadcast_to")
def _broadcast_to(func, x, *sizes):
    return x.expand(*_sizes(sizes))


@rule("_unsafe_view")
def _unsafe_view(func, x, sizes):
    found = x.reshape(*sizes)
    return found._like(found.values().clone())


@rule("movedim", "moveaxis")
def _movedim(func, x, source, destination):
    name, dims = name_of(func), x.dim()
    pairs = [[n] if isinstance(n, int) else list(n) for n in (source, destination)]
    moved, places = ([wrap_dim(name, d, dims) for d in each] for each in pairs)
    rest = iter([d for d in range(dims) if d not in moved])
    at = dict(zip(places, moved, strict=True))
    return x.permute(*[at[d] if d in at else next(rest) for d in range(dims)])


@rule("one_hot")
def _one_hot(func, x, num_classes=-1):
    return x._like(func(plain(x), num_classes))


@rule("embedding_bag")
def _embedding_bag(func, input, weight, offsets=None, *args, **kwargs):
    """A bag for each component."""
    if offsets is not None:
        raise ValueError("if input is a nested tensor, then offsets has to be None")
    starts = input.offsets()[:-1]
    weights = kwargs.pop("per_sample_weights", None)
    if isinstance(weights, NestedTensor):
        weights = plain(weights)
    return func(plain(input), weight, starts, *args, per_sample_weights=weights, **kwargs)


@rule("l1_loss", "kl_div", "smooth_l1_loss", "huber_loss", "poisson_nll_loss", "soft_margin_loss")
def _loss(func, input, target, *args, **kwargs):
    if not isinstance(input, NestedTensor) or not isinstance(target, NestedTensor):
        raise RuntimeError(f"{name_of(func)}(): expected a nested input and a nested target")
    check_same_cuts(name_of(func), input, target)
    if name_of(func) == "kl_div" and "batchmean" in (*args, *kwargs.values()):
        raise RuntimeError("kl_div(): reduction='batchmean' is not supported for NestedTensor")
    found = func(plain(input), plain(target), *args, **kwargs)
    return input._like(found) if found.dim() else found


@rule("isclose")
def _isclose(func, a, b, *args, **kwargs):
    like = a if isinstance(a, NestedTensor) else b
    if isinstance(a, NestedTensor) and isinstance(b, NestedTensor):
        check_same_cuts("isclose", a, b)
    values = [plain(t) if isinstance(t, NestedTensor) else t for t in (a, b)]
    return like._like(func(*values, *args, **kwargs))


@rule("diff")
def _diff(func, x, n=1, dim=-1, prepend=None, append=None):
    dim = inner("diff", x, dim)
    ends = {"prepend": prepend, "append": append}
    ends = {k: plain(t) if isinstance(t, NestedTensor) else t for k, t in ends.items()}
    return x._like(func(plain(x), n, dim, **ends))


@rule("repeat_interleave")
def _repeat_interleave(func, x, repeats, dim=None, **kwargs):
    if dim is None:
        raise RuntimeError("repeat_interleave(): a nested tensor is repeated along a dimension")
    return x._like(func(plain(x), repeats, inner("repeat_interleave", x, dim), **kwargs))


@rule("dsplit")
def _dsplit(func, x, how):
    if x.dim() < 3:
        raise RuntimeError("torch.dsplit requires a tensor with at least 3 dimension")
    return tuple(x._like(part) for part in rushlight.tensor_split(plain(x), how, inner("dsplit", x, 2)))


@rule("dstack")
def _dstack(func, tensors):
    return rushlight.cat([t if t.dim() > 2 else t.unsqueeze(2) for t in tensors], 2)
