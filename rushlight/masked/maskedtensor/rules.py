"""What functions and operators do with the data and the masks of masked tensors.

A function whose derivative depends on the masks (a reduction, softmax, where) is computed of plain tensors
before gradients are recorded, so that its derivative is theirs. Operators below that level act on data and
masks alike.
"""

import rushlight as torch
from rushlight.masked.maskedtensor.core import MaskedTensor, _masks_match, is_masked_tensor
from rushlight.masked.maskedtensor.functions import Result, Values, like
from rushlight.masked.maskedtensor.reductions import REDUCE_NAMES
from rushlight.utils._pytree import tree_map, tree_map_only

_POSITIONS = frozenset(["argmax", "argmin"])
_ALONG_A_DIMENSION = frozenset(["softmax", "log_softmax", "softmin", "cumsum", "cumprod"])


_PLACES = frozenset(["index", "indices", "mask"])  # parameters that say where elements go


class FunctionRule:
    """How a function of `torch` answers for masked tensors."""

    def __init__(self, answer, takes):
        self._answer, self.takes = answer, takes

    def __call__(self, *args, **kwargs):
        return self._answer(*args, **kwargs)


def for_function(name):
    """The rule for a function or method of this name, or None."""
    if name in REDUCE_NAMES:
        return FunctionRule(lambda *args, **kwargs: _reduce(name, *args, **kwargs), _first_is_masked)
    if name in _ALONG_A_DIMENSION:
        return FunctionRule(lambda *args, **kwargs: _along(name, *args, **kwargs), _first_is_masked)
    if name == "where":
        return FunctionRule(_where, lambda args: len(args) == 3)
    return None


def _first_is_masked(args):
    return bool(args) and is_masked_tensor(args[0])


def _reduce(name, input, *args, **kwargs):
    """A reduction of all elements, or along dimensions, of those that are there."""
    whole = _dimensions(name, args, kwargs) is None
    if input.layout is not torch.strided:
        if not whole or name in _POSITIONS:
            return _reduce(name, input.to_dense(), *args, **kwargs)
        data, mask = Values.apply(input), input.get_mask().values()
    else:
        data, mask = input.get_data(), input.get_mask()
    result = _reduction(name)(data, *args, mask=mask, **kwargs)
    return Result.apply(result, _present(name, mask, args, kwargs))


def _dimensions(name, args, kwargs):
    at = 1 if name == "norm" else 0
    return args[at] if len(args) > at else kwargs.get("dim")


def _present(name, mask, args, kwargs):
    """Where a reduction met any element."""
    from rushlight.masked import _ops

    at = 2 if name == "norm" else 1
    keepdim = args[at] if len(args) > at and isinstance(args[at], bool) else kwargs.get("keepdim", False)
    dims = _ops._dims(_dimensions(name, args, kwargs), mask.dim())
    return mask.any(dims, keepdim) if dims else mask


def _reduction(name):
    """torch.masked's function, called as torch's; of `all` and `any` there is none."""
    from rushlight import masked

    if name in ("all", "any"):
        identity, reduce = name == "all", getattr(torch, name)
        return lambda data, *args, mask, **kwargs: reduce(data.masked_fill(~mask, identity), *args, **kwargs)
    function = getattr(masked, name)
    if name == "norm":
        return lambda data, p=2, dim=None, keepdim=False, *, mask, **kwargs: function(
            data, 2.0 if p == "fro" else p, dim, keepdim=keepdim, mask=mask, **kwargs
        )
    if name in ("std", "var"):
        return lambda data, *args, mask, **kwargs: function(data, *args, mask=mask, **kwargs)
    return lambda data, dim=None, keepdim=False, *, mask, **kwargs: function(
        data, dim, keepdim=keepdim, mask=mask, **kwargs
    )


def _along(name, input, dim, _stacklevel=3, dtype=None):
    from rushlight import masked

    if input.layout is not torch.strided:
        return _along(name, input.to_dense(), dim, dtype=dtype)._to_layout(input.layout)
    mask = input.get_mask()
    return Result.apply(getattr(masked, name)(input.get_data(), dim, dtype=dtype, mask=mask), mask)


def _where(condition, input, other):
    """Elements come with their masks, which may differ here; of a plain tensor all are there."""
    data, masks = zip(*(_parts(t) for t in (input, other)), strict=True)
    return Result.apply(torch.where(condition, *data), torch.where(condition, *masks))


def _parts(t):
    if is_masked_tensor(t):
        whole = t.to_dense()
        return whole.get_data(), whole.get_mask()
    return t, torch.ones_like(t, dtype=torch.bool) if isinstance(t, torch.Tensor) else True


def for_operator(func):
    """The rule for an operator, from what its record says of it, or None."""
    name = func.overloadpacket.__name__
    if name == "_local_scalar_dense":
        return _item
    if torch.Tag.pointwise in func.tags or name == "_to_copy":
        return _pointwise
    if name in REDUCE_NAMES:
        return lambda func, args, kwargs: _reduce(name, *args, **kwargs)
    if _adds_what_meets(func):
        return _add_what_meets
    return _move if _moves_elements(func) or _is_view(func._schema) else None


def _moves_elements(func):
    """Whether results are elements of the operand in other places, and of no other operand."""
    arguments = func._schema.arguments
    tensors = [
        a.name for a in arguments if str(a.type) in ("Tensor", "Optional[Tensor]", "List[Optional[Tensor]]")
    ]
    return (
        func.traits.family in ("copy", "index", "join")
        and func.traits.tangent == "linear"
        and not func._schema.is_mutable
        and _PLACES.issuperset(tensors[1:])
    )


def _adds_what_meets(func):
    """Whether results are sums of those elements that come to one place."""
    if func.overloadpacket.__name__ in ("im2col", "col2im"):
        return True
    return func.traits.family == "gradient" and func.traits.tangent == "linear"


def _is_view(schema):
    aliases = [part.alias_info for part in (*schema.arguments, *schema.returns)]
    return any(a is not None and not a.is_write for a in aliases)


def _item(func, args, kwargs):
    if not args[0].get_mask():
        raise ValueError("item(): the element is masked out")
    return args[0]._masked_data.item()


def _pointwise(func, args, kwargs):
    """Elements of the data; operands must have equal masks, and the result has theirs."""
    first = next(a for a in args if is_masked_tensor(a))
    writes = torch.Tag.inplace in func.tags
    if writes and args[0] is not first:
        raise TypeError(
            f"{func}: a plain tensor cannot take the elements of a masked one; use to_tensor(value)"
        )
    if not all(_masks_match(first, a) for a in args):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an issue on Github."
        )
    mask = first.get_mask()
    plain = tree_map(lambda a: _operand(a, mask), (args, kwargs))
    result = func(*plain[0], **plain[1])
    return first if writes else tree_map_only(torch.Tensor, lambda t: _with(mask, t), result)


def _operand(a, mask):
    """The elements that take part: of a sparse tensor its values, of a plain one those at the same places."""
    strided = mask.layout is torch.strided
    if isinstance(a, MaskedTensor):
        return a._masked_data if strided else a._masked_data.values()
    if strided or not isinstance(a, torch.Tensor) or a.dim() == 0:
        return a
    return a.to_dense().sparse_mask(mask).values()


def _with(mask, elements):
    if mask.layout is not torch.strided:
        return MaskedTensor._of(like(mask, elements), mask)
    return MaskedTensor._of(elements, mask if mask.shape == elements.shape else mask.expand(elements.shape))


def _add_what_meets(func, args, kwargs):
    """A sum is there where one of its terms is; operators that add take no truth values."""
    data = func(*tree_map_only(MaskedTensor, lambda a: a._masked_data, args), **kwargs)
    mask = func(*tree_map_only(MaskedTensor, lambda a: a._masked_mask.float(), args), **kwargs) > 0
    return MaskedTensor._of(data, mask)


def _move(func, args, kwargs):
    """The mask goes the way of the data."""
    data = func(*tree_map(lambda a: a._masked_data if is_masked_tensor(a) else a, args), **kwargs)
    mask = func(*(_masks(a) for a in args), **kwargs)
    pairs = zip(data, mask, strict=True) if isinstance(data, (tuple, list)) else None
    return MaskedTensor._of(data, mask) if pairs is None else tuple(MaskedTensor._of(*p) for p in pairs)


def _masks(a):
    """Masks in place of masked tensors; a plain tensor listed beside them is there as a whole."""
    if isinstance(a, (tuple, list)) and any(is_masked_tensor(t) for t in a):
        return [_parts(t)[1] for t in a]
    return a._masked_mask if is_masked_tensor(a) else a
