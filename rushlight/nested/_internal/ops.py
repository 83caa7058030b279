"""What functions do with jagged nested tensors: each works on the packed values and cuts its result anew.

A function is found by its name; in-place forms and methods share the rule of the function."""

import rushlight
from rushlight import _C
from rushlight.nested._internal.nested_tensor import (
    NestedInt,
    NestedTensor,
    check_same_kind,
    component_places,
    jagged_from_list,
    plain,
)
from rushlight.nested._internal.same_shape import elementwise, keeps_shape

# On the values as a whole, too, though these are no operators on one operand of the same shape.
_VALUEWISE = frozenset("data embedding feature_alpha_dropout new_empty requires_grad_ retain_grad".split())
_REDUCTIONS = {
    "sum": 0,
    "mean": 0,
    "prod": 1,
    "all": True,
    "any": False,
    "amax": "lowest",
    "max": "lowest",
    "argmax": "lowest",
    "amin": "highest",
    "min": "highest",
    "argmin": "highest",
}
_RULES: dict = {}


def rule(*names):
    def register(function):
        for name in names:
            _RULES[name] = function
        return function

    return register


def name_of(func):
    """The name of a function, or of an overload without the overload's."""
    return getattr(func, "__name__", str(func)).partition(".")[0]


def call(func, args, kwargs):
    """`func` of arguments with jagged tensors among them."""
    name = name_of(func)
    if name in ("__get__", "__set__", "__delete__") or name in _AS_THEY_ARE or name.startswith("_fused_"):
        check_same_kind(name, args)
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if name in _RULES:
        return _RULES[name](func, *args, **kwargs)
    if name in _VALUEWISE or name in keeps_shape():
        return _valuewise(func, args, kwargs)
    if {name, base} & elementwise():
        return _pointwise(func, base, args, kwargs)
    if name in _REDUCTIONS:
        return _reduce(func, name, *args, **kwargs)
    raise NotImplementedError(
        f"{name}(): no rule for jagged nested tensors; work on .values(), .unbind() or .to_padded_tensor()"
    )


# What needs no other shape: attributes, hooks, autograd.
_AS_THEY_ARE = {
    *(
        "backward",
        "grad",
        "register_hook",
        "register_post_accumulate_grad_hook",
        "is_floating_point",
        "is_complex",
    ),
    *(
        "data_ptr",
        "element_size",
        "is_inference",
        "storage",
        "untyped_storage",
        "__hash__",
        "is_signed",
        "nbytes",
    ),
    *("__format__", "__dir__", "get_device", "is_same_size", "retains_grad", "is_shared", "_is_view"),
}


def _nested_in(args):
    for arg in args:
        if isinstance(arg, NestedTensor):
            return arg
        if isinstance(arg, (list, tuple)):
            found = _nested_in(arg)
            if found is not None:
                return found
    return None


def _mapped(args, function):
    return [
        function(arg)
        if isinstance(arg, rushlight.Tensor)
        else type(arg)(_mapped(arg, function))
        if type(arg) in (list, tuple)
        else arg
        for arg in args
    ]


def _valuewise(func, args, kwargs):
    like = _nested_in([*args, *kwargs.values()])
    unwrap = lambda t: plain(t) if isinstance(t, NestedTensor) else t  # noqa: E731
    values = dict(zip(kwargs, _mapped(kwargs.values(), unwrap), strict=True))
    if name_of(func) in ("requires_grad_", "retain_grad"):
        with _C.DisableTorchFunctionSubclass():
            func(*args, **kwargs)
        return args[0]
    result = func(*_mapped(args, unwrap), **values)
    return _again(func, args, like, result)


def _again(func, args, like, result):
    """The result of an operation on values; of one in place, its target."""
    if name_of(func).endswith("_") and not name_of(func).endswith("__") and isinstance(args[0], NestedTensor):
        return args[0]
    if isinstance(result, tuple):  # as frexp gives
        return type(result)(tuple(like._like(part) for part in result))
    return like._like(result) if isinstance(result, rushlight.Tensor) else result


# --- broadcasting ---------------------------------------------------------------------------------


def _places(nested):
    """Of each packed element the number of its component, and its place in it."""
    return component_places(nested._offsets, plain(nested).shape[nested._ragged_idx - 1])


def _packed(dense, nested):
    """A dense operand in the layout of the values: repeated for each element of a component, or cut."""
    name, dims, at = "pointwise function", nested.dim(), nested._ragged_idx
    if dense.dim() < dims and (dense.dim() < dims - at or dense.shape[at - dims] == 1):
        return dense
    batch = nested._offsets.shape[0] - 1
    if dense.dim() != dims or dense.shape[0] not in (1, batch):
        raise RuntimeError(
            f"cannot call binary {name} with inputs of shapes {tuple(nested.shape)} and {tuple(dense.shape)}"
        )
    if dense.shape[0] == 1 and dense.shape[at] == 1:
        return dense.squeeze(0)
    component, place = _places(nested)
    rows = dense.expand(batch, *dense.shape[1:]).movedim(at, 1)
    if rows.shape[1] == 1:
        return rows[component, 0].movedim(0, at - 1)
    if rows.shape[1] != nested._max_seqlen:
        raise RuntimeError(
            f"cannot call binary {name} with inputs of shapes {tuple(nested.shape)} and {tuple(dense.shape)}"
        )
    return rows[component, place.clamp(max=rows.shape[1] - 1)].movedim(0, at - 1)


def check_same_cuts(name, first, other):
    if other._ragged != first._ragged or other._ragged_idx - other.dim() != first._ragged_idx - first.dim():
        raise RuntimeError(
            f"cannot call binary pointwise function {name} with inputs of shapes {tuple(first.shape)} and "
            f"{tuple(other.shape)}"
        )


def _pointwise(func, name, args, kwargs):
    like = _nested_in([*args, *kwargs.values()])
    if any(isinstance(a, NestedInt) for a in args):
        raise RuntimeError(f"{name}(): invalid argument: the ragged size of a nested tensor is no number")

    def operand(t):
        if not isinstance(t, NestedTensor):
            return t if t.dim() == 0 else _packed(t, like)
        check_same_cuts(f"{name}.Tensor", like, t)
        return plain(t)

    named = dict(zip(kwargs, _mapped(kwargs.values(), operand), strict=True))
    return _again(func, args, like, func(*_mapped(args, operand), **named))


# --- reductions -----------------------------------------------------------------------------------


def _filler(name, dtype):
    value = _REDUCTIONS[name]
    if value not in ("lowest", "highest"):
        return value
    if dtype.is_floating_point:
        return float("-inf") if value == "lowest" else float("inf")
    limits = rushlight.iinfo(dtype) if dtype is not rushlight.bool else None
    if limits is None:
        return value == "highest"
    return limits.min if value == "lowest" else limits.max


def wrap_dim(name, dim, dims):
    if not -dims <= dim < dims:
        raise IndexError(
            f"{name}(): Dimension out of range (expected to be in range of [{-dims}, {dims - 1}], but got "
            f"{dim})"
        )
    return dim % dims


def _reduce(func, name, x, dim=None, keepdim=False, *, dtype=None, **named):
    options = {} if dtype is None else {"dtype": dtype}
    if isinstance(dim, NestedTensor) or not isinstance(x, NestedTensor):
        return _pointwise(func, name, (x, dim), named)
    if isinstance(dim, rushlight.Tensor):
        return _pointwise(func, name, (x, dim), named)
    if dim is None or dim == ():
        values = plain(x) if x._lengths is None else rushlight.cat([t.flatten() for t in x.unbind()])
        return func(values, **options)
    dims = sorted({wrap_dim(name, d, x.dim()) for d in ([dim] if isinstance(dim, int) else dim)})
    at = x._ragged_idx
    if 0 in dims:
        if at not in dims:
            raise RuntimeError(
                f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported "
                "for nested tensors"
            )
        result = func(plain(x), [d - 1 for d in dims if d], keepdim, **options)
        return result.unsqueeze(0) if keepdim else result
    if at in dims:
        if x._lengths is not None:
            raise RuntimeError(
                f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested "
                "tensors with holes"
            )
        if len(dims) > 1:
            raise RuntimeError(
                f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested "
                "tensors"
            )
        return _reduce_ragged(func, name, x, keepdim, options)
    inside = [d - 1 for d in dims]
    result = func(
        plain(x), inside[0] if isinstance(dim, int) or len(inside) == 1 else inside, keepdim, **options
    )
    shift = 0 if keepdim else sum(d < at for d in dims)
    if isinstance(result, rushlight.Tensor):
        return x._like(result, at - shift)
    return type(result)(tuple(x._like(part, at - shift) for part in result))


def _reduce_ragged(func, name, x, keepdim, options):
    """One result for each component."""
    if name == "mean":
        total = _reduce_ragged(rushlight.sum, "sum", x, keepdim, options)
        lengths = x._component_lengths()
        shape = [-1] + [1] * (total.dim() - 1)
        return total / lengths.to(total.dtype).view(shape)
    padded = to_padded(x, _filler(name, x.dtype))
    return func(padded, x._ragged_idx, keepdim, **options)


# --- padding --------------------------------------------------------------------------------------


def _refuse_holes(name, x):
    if x._lengths is not None:
        raise RuntimeError(f"{name}(): not supported for nested tensors with holes")


@rule("to_padded_tensor")
def _to_padded_tensor(func, x, padding, output_size=None, out=None):
    return to_padded(x, padding, output_size)


def to_padded(x, padding, output_size=None):
    """The components below each other, `padding` where one ends."""
    _refuse_holes("to_padded_tensor", x)
    at, values = x._ragged_idx, plain(x)
    rows = values.movedim(at - 1, 0)
    sizes = [len(x), x._max_seqlen, *rows.shape[1:]]
    result = rows.new_full(sizes, padding).index_put(_places(x), rows).movedim(1, at)
    if output_size is None:
        return result
    extra = [wanted - n for wanted, n in zip(output_size, result.shape, strict=True)]
    if min(extra) < 0 or extra[0]:
        raise RuntimeError(
            f"to_padded_tensor(): the output size {tuple(output_size)} is smaller than the padded tensor's "
            f"{tuple(result.shape)}"
        )
    return rushlight.nn.functional.pad(result, [n for e in reversed(extra) for n in (0, e)], value=padding)


def from_padded(padded, like):
    return like._like(padded.movedim(like._ragged_idx, 1)[_places(like)].movedim(0, like._ragged_idx - 1))


# --- shapes ---------------------------------------------------------------------------------------


def inner(name, x, dim, extra=0):
    """A dimension of the values, which must not be the ragged one."""
    dim = wrap_dim(name, dim, x.dim() + extra)
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if not extra and dim == x._ragged_idx:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return dim - 1


@rule("transpose", "swapaxes", "swapdims")
def _transpose(func, x, dim0, dim1):
    a, b = (wrap_dim("transpose", d, x.dim()) for d in (dim0, dim1))
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    at = {a: b, b: a}.get(x._ragged_idx, x._ragged_idx)
    return x._like(plain(x).transpose(a - 1, b - 1), at)


@rule("permute")
def _permute(func, x, *dims):
    dims = dims[0] if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims
    order = [wrap_dim("permute", d, x.dim()) for d in dims]
    if len(order) != x.dim():
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({x.dim()}) does not match the length of "
            f"the desired ordering of dimensions ({len(order)})."
        )
    if len(set(order)) != len(order):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if not order or order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return x._like(plain(x).permute([d - 1 for d in order[1:]]), order.index(x._ragged_idx))


@rule("unsqueeze")
def _unsqueeze(func, x, dim):
    dim = inner("unsqueeze", x, dim, extra=1)
    return x._like(plain(x).unsqueeze(dim), x._ragged_idx + (dim < x._ragged_idx))


@rule("squeeze")
def _squeeze(func, x, dim=None):
    if dim is None:
        raise RuntimeError("squeeze(): For nested tensors, squeeze without the dim argument is not supported")
    dim = inner("squeeze", x, dim)
    values = plain(x).squeeze(dim)
    return x._like(values, x._ragged_idx - (values.dim() < x.dim() - 1 and dim < x._ragged_idx - 1))


@rule("flatten")
def _flatten(func, x, start_dim=0, end_dim=-1):
    first, last = (wrap_dim("flatten", d, x.dim()) for d in (start_dim, end_dim))
    if first == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if first <= x._ragged_idx <= last and first != last:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    at = x._ragged_idx - (last - first if last < x._ragged_idx else 0)
    return x._like(plain(x).flatten(first - 1, last - 1), at)


@rule("unflatten")
def _unflatten(func, x, dim, sizes):
    dim = inner("unflatten", x, dim)
    return x._like(
        plain(x).unflatten(dim, sizes), x._ragged_idx + (len(sizes) - 1) * (dim < x._ragged_idx - 1)
    )


@rule("view", "reshape", "expand")
def _view(func, x, *sizes):
    sizes = list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else list(sizes)
    name, values, at = name_of(func), plain(x), x._ragged_idx
    if len(sizes) < 2 or sizes[0] not in (len(x), -1):
        raise RuntimeError(f"{name}(): cannot take a NestedTensor of shape {tuple(x.shape)} to {sizes}")
    named = [d for d, n in enumerate(sizes) if n == x._ragged]
    ragged = named[0] if named else at if at < len(sizes) and sizes[at] == -1 else None
    if ragged is None or (ragged != at and name != "expand" and list(x.shape[1:at]) != sizes[1:at]):
        raise RuntimeError(
            f"{name}(): the ragged dimension of shape {tuple(x.shape)} must stay where it is, got {sizes}"
        )
    sizes[ragged] = values.shape[at - 1]
    return x._like(func(values, sizes[1:]), ragged)


@rule("cat", "concat", "concatenate", "stack")
def _join(func, tensors, dim=0, **options):
    like, stacks = _nested_in(tensors), name_of(func) == "stack"
    for t in tensors:
        if not isinstance(t, NestedTensor) or t._ragged != like._ragged or t._ragged_idx != like._ragged_idx:
            raise RuntimeError(
                f"{name_of(func)}(): expected each tensor in given list to be nested with the same lengths"
            )
    dim = inner(name_of(func), like, dim, extra=int(stacks))
    return like._like(
        func([plain(t) for t in tensors], dim), like._ragged_idx + (stacks and dim < like._ragged_idx)
    )


@rule("chunk", "split", "split_with_sizes", "tensor_split", "unsafe_chunk", "unsafe_split")
def _pieces(func, x, how, dim=0):
    if wrap_dim(name_of(func), dim, x.dim()) == 0:
        if name_of(func) != "chunk":
            inner(name_of(func), x, dim)
        groups, n = x.unbind(), -(-len(x) // how)
        return tuple(jagged_from_list(list(groups[i : i + n]))[0] for i in range(0, len(groups), n))
    name = "split_with_sizes" if isinstance(how, (list, tuple)) else name_of(func)
    return tuple(x._like(part) for part in func(plain(x), how, inner(name, x, dim)))


@rule("select")
def _select(func, x, dim, index):
    if wrap_dim("select", dim, x.dim()) == 0:
        return x.unbind()[index]
    dim = inner("select", x, dim)
    return x._like(plain(x).select(dim, index), x._ragged_idx - (dim < x._ragged_idx - 1))


@rule("narrow")
def _narrow(func, x, dim, start, length):
    return x._like(plain(x).narrow(inner("narrow", x, dim), start, length))


@rule("__getitem__")
def _getitem(func, x, index):
    index = index if isinstance(index, tuple) else (index,)
    if Ellipsis in [i if i is Ellipsis else None for i in index]:
        at, new = [i is Ellipsis for i in index].index(True), sum(i is None for i in index)
        index = (*index[:at], *[slice(None)] * (x.dim() - len(index) + new + 1), *index[at + 1 :])
    first, *rest = index or (slice(None),)
    if isinstance(first, int):
        return x.unbind()[first][tuple(rest)] if rest else x.unbind()[first]
    if any(isinstance(i, (list, rushlight.Tensor)) for i in index):
        raise NotImplementedError("__getitem__(): jagged nested tensors take numbers, slices and None only")
    if first is None:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    taken = [i for i in index if i is not None]
    for d, i in enumerate(taken):
        if d in (0, x._ragged_idx) and i != slice(None):
            raise RuntimeError(f"slice(): not supported for NestedTensor on dim={d}")
    shift, left = 0, x._ragged_idx - 1
    for i in rest:
        if left <= 0 and i is not None:
            break
        shift += (i is None) - isinstance(i, int)
        left -= i is not None
    return x._like(plain(x)[tuple(rest)], x._ragged_idx + shift)


@rule("__setitem__")
def _setitem(func, x, index, value):
    first, *rest = index if isinstance(index, tuple) else (index,)
    if not isinstance(first, int):
        raise NotImplementedError("__setitem__(): a component of a jagged nested tensor is named by a number")
    func(x.unbind()[first], tuple(rest) or Ellipsis, value)


@rule("unbind")
def _unbind(func, x, dim=0):
    return x.unbind(dim)


@rule("contiguous")
def _contiguous(func, x, memory_format=rushlight.contiguous_format):
    if x._lengths is None:
        return x._like(plain(x).contiguous())
    return jagged_from_list(list(x.unbind()))[0]


# --- the rest -------------------------------------------------------------------------------------


@rule("equal", "allclose")
def _same(func, a, b, *args, **kwargs):
    if (
        not all(isinstance(t, NestedTensor) for t in (a, b))
        or a._ragged_idx != b._ragged_idx
        or len(a) != len(b)
    ):
        return False
    pairs = list(zip(a.unbind(), b.unbind(), strict=True))
    return all(x.shape == y.shape and func(x, y, *args, **kwargs) for x, y in pairs)


@rule("size", "dim", "numel", "stride", "is_contiguous", "ndimension", "nelement", "values", "offsets")
def _fact(func, x, *args, **kwargs):
    name = {"ndimension": "dim", "nelement": "numel"}.get(name_of(func), name_of(func))
    return getattr(x, name)(*args, **kwargs)


@rule("copy_")
def _copy(func, x, source, *args, **kwargs):
    nested = isinstance(x, NestedTensor) and isinstance(source, NestedTensor)
    if not nested or x.shape != source.shape:
        raise RuntimeError(
            f"copy_(): expected compatible input and src shapes, but got: {x.shape} and {source.shape}"
        )
    return _valuewise(func, (x, source, *args), kwargs)


@rule("apply_")
def _apply(func, x, function):
    func(plain(x).detach(), function)
    return x


@rule("is_nonzero", "item", "__bool__", "__float__", "__int__")
def _one_number(func, x):
    raise RuntimeError(f"{name_of(func)}(): a nested tensor is not one number; use .values()")


@rule("__deepcopy__")
def _deepcopy(func, x, memo):
    if id(x) not in memo:
        copied = x._like(plain(x).detach().clone())
        memo[id(x)] = copied.requires_grad_() if x.requires_grad else copied
    return memo[id(x)]
