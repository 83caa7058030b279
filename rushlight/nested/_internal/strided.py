"""Strided nested tensors: components of any sizes of one rank in a flat buffer.

Those that are made lie one after the other; views of them (transposed, cut, reshaped) share the buffer and
lie where their places say."""

import rushlight
from rushlight import _C
from rushlight._serialization.settings import skips_data
from rushlight.nested._internal import checks
from rushlight.nested._internal.nested_tensor import check_same_kind, plain
from rushlight.nested._internal.places import packed_starts, packed_strides, pieces, settled
from rushlight.nested._internal.same_shape import elementwise, keeps_shape
from rushlight.overrides import is_operator_method, redispatch_function

__all__ = ["StridedNestedTensor", "inner", "packed", "strided_from_buffer", "strided_from_list"]

# On each component: a dimension argument counts the batch.
_COMPONENTWISE = {"linear", "layer_norm", "rms_norm", "embedding", "matmul", "__matmul__", "__rmatmul__"}
_SHIFTED = {"softmax", "log_softmax"}


class StridedNestedTensor(rushlight.Tensor):
    """A nested tensor of layout ``torch.strided``; it is an alias of its buffer."""

    _source = None  # the nested tensor that this one is a view of

    def __new__(cls, buffer, sizes, requires_grad=False, places=None):
        """A flat `buffer` of components of `sizes`."""
        with _C.DisableTorchFunctionSubclass():
            self = buffer.as_subclass(cls)
            if requires_grad:
                self = self.detach().as_subclass(cls).requires_grad_()
        self._sizes, self._places = [tuple(size) for size in sizes], places
        return self

    def __init__(self, *args, **kwargs):
        pass

    is_nested = property(lambda self: True)
    layout = property(lambda self: rushlight.strided)
    ndim = property(lambda self: self.dim())

    def dim(self):
        """One more than the components have."""
        return len(self._sizes[0]) + 1 if self._sizes else 1

    def size(self, dim=None):
        """The size of a dimension that all components agree on."""
        if dim is None:
            return self.shape
        if not -self.dim() <= dim < self.dim():
            raise IndexError(f"Dimension out of range: {dim} of a nested tensor with {self.dim()} dimensions")
        dim %= self.dim()
        found = {len(self._sizes)} if dim == 0 else {size[dim - 1] for size in self._sizes}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return found.pop()

    @property
    def shape(self):
        """Refused: the components have different shapes."""
        raise RuntimeError(
            "NestedTensorImpl doesn't support sizes: a nested tensor of layout torch.strided has no shape; "
            ".size(dim) gives the sizes that all components agree on"
        )

    def stride(self, dim=None):
        """Refused: the components have different strides."""
        raise RuntimeError(
            "NestedTensorImpl doesn't support strides: each component of .unbind() has its own"
        )

    def _same_sizes(self, other):
        return isinstance(other, StridedNestedTensor) and self._sizes == other._sizes

    def numel(self):
        """The number of elements of all components."""
        if self._places is None:
            return plain(self).numel()
        return sum(rushlight.Size(size).numel() for size in self._sizes)

    def is_contiguous(self, memory_format=rushlight.contiguous_format):
        """Whether the components fill the buffer one after the other."""
        return self._places is None

    def values(self):
        """The buffer, which the components fill."""
        if self._places is not None:
            raise RuntimeError("NestedTensor must be contiguous to get buffer.")
        return plain(self)

    @property
    def _base(self):
        if self._source is not None:
            return self._source
        with _C.DisableTorchFunctionSubclass():
            return rushlight.Tensor._base.__get__(self)

    def _like(self, buffer):
        """Components of the same sizes in the same places of another buffer."""
        return StridedNestedTensor(buffer, self._sizes, places=self._places)

    def is_pinned(self, device=None):
        """Whether the buffer is in pinned memory."""
        return plain(self).is_pinned()

    def _nested_tensor_size(self):
        return rushlight.tensor(self._sizes, dtype=rushlight.int64)

    def _nested_tensor_strides(self):
        strides = self._places[0] if self._places else [packed_strides(size) for size in self._sizes]
        return rushlight.tensor(strides, dtype=rushlight.int64)

    def _nested_tensor_storage_offsets(self):
        starts = self._places[1] if self._places else packed_starts(self._sizes)
        return rushlight.tensor(starts, dtype=rushlight.int64)

    def unbind(self, dim=0):
        """The components, as views of the buffer."""
        if dim != 0:
            raise RuntimeError(
                f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead."
            )
        return pieces(plain(self), self._sizes, self._places)

    def __len__(self):
        return len(self._sizes)

    def __iter__(self):
        return iter(self.unbind())

    def to_padded_tensor(self, padding, output_size=None):
        """The components in one dense tensor, `padding` where one is smaller."""
        if not self._sizes:
            return plain(self)
        if self._places is not None:
            raise RuntimeError("for now to_padded_tensor only supports contiguous nested tensor")
        most = [max(sizes) for sizes in zip(*self._sizes, strict=True)]
        if self.numel() == 0:
            raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
        wanted = [len(self), *most] if output_size is None else list(output_size)
        if len(wanted) != self.dim() or any(w < m for w, m in zip(wanted, [len(self), *most], strict=True)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported: "
                f"{wanted}"
            )
        pad = rushlight.nn.functional.pad
        rows = [
            pad(
                t,
                [n for w, m in zip(wanted[:0:-1], reversed(t.shape), strict=True) for n in (0, w - m)],
                value=padding,
            )
            for t in self.unbind()
        ]
        return rushlight.stack(rows)

    @property
    def grad(self):
        """The gradient, a nested tensor of the same sizes."""
        with _C.DisableTorchFunctionSubclass():
            found = rushlight.Tensor.grad.__get__(self)
        return None if found is None else self._gradient(found)

    @grad.setter
    def grad(self, value):
        with _C.DisableTorchFunctionSubclass():
            rushlight.Tensor.grad.__set__(
                self, plain(value) if isinstance(value, StridedNestedTensor) else value
            )

    def _gradient(self, values):
        return values if isinstance(values, StridedNestedTensor) else self._like(values)

    def __repr__(self, *, tensor_contents=None):
        parts = ",\n".join("  " + repr(t.detach()).replace("\n", "\n  ") for t in self.unbind())
        grad = ", requires_grad=True" if self.requires_grad else ""
        grad = f", grad_fn=<{type(self.grad_fn).__name__}>" if self.grad_fn else grad
        return f"nested_tensor([\n{parts}\n]{grad})"

    def __reduce_ex__(self, protocol):
        if skips_data():
            raise RuntimeError("Cannot serialize nested tensor under skip_data context manager")
        places = self._nested_tensor_size(), self._nested_tensor_strides()
        places += (self._nested_tensor_storage_offsets(),)
        buffer = plain(self.detach()).requires_grad_(self.requires_grad)
        return rushlight._utils._rebuild_nested_tensor, (buffer, *places)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if is_operator_method(func):
            return redispatch_function(func, types, args, kwargs or {})
        return _call(func, args, kwargs or {})


def strided_from_buffer(buffer, sizes, strides, offsets):
    """The nested tensor of a buffer and three tables that say where its components lie."""
    sizes, strides = ([*map(tuple, table.tolist())] for table in (sizes, strides))
    places = settled(buffer, sizes, strides, offsets.tolist())
    return StridedNestedTensor(buffer.detach(), sizes, buffer.requires_grad, places)


def strided_from_list(tensors, dtype=None, device=None, requires_grad=False):
    """The nested tensor of some tensors of one rank."""
    tensors = [t.to(device=device, dtype=dtype) for t in tensors]
    for i in range(1, len(tensors)):
        if tensors[i].dim() != tensors[i - 1].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{tensors[i].dim()} for Tensor at index {i} and dimension {tensors[i - 1].dim()} for "
                f"Tensor at index {i - 1}."
            )
    if len({t.dtype for t in tensors}) > 1:
        raise RuntimeError(
            "All Tensors given to nested_tensor must have the same dimension and dtype, got "
            f"{[(tuple(t.shape), str(t.dtype)) for t in tensors]}"
        )
    buffer = rushlight.cat([t.reshape(-1) for t in tensors]) if tensors else rushlight.empty(0, dtype=dtype)
    return StridedNestedTensor(buffer, [t.shape for t in tensors], requires_grad)


def _call(func, args, kwargs):
    from rushlight.nested._internal import strided_views
    from rushlight.nested._internal.ops import _AS_THEY_ARE, name_of

    name = name_of(func)
    if name == "is_same_size":
        check_same_kind(name, args)
        return args[0]._same_sizes(args[1])
    if name in ("__get__", "__set__", "__delete__") or name in _AS_THEY_ARE or name.startswith("_fused_"):
        check_same_kind(name, args)
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    if name == "requires_grad_":
        with _C.DisableTorchFunctionSubclass():
            func(*args, **kwargs)
        return args[0]
    nested = [a for a in [*args, *kwargs.values()] if isinstance(a, StridedNestedTensor)]
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if nested and (name in keeps_shape() or {name, base} & elementwise()):
        return _bufferwise(func, name, nested, args, kwargs)
    if name in strided_views.RULES:
        return strided_views.RULES[name](func, *args, **kwargs)
    if name in _SHIFTED:
        return _shifted(func, name, *args, **kwargs)
    if name in _COMPONENTWISE:
        if name in checks.OF_COMPONENTS:
            checks.OF_COMPONENTS[name](*args, **kwargs)
        return _componentwise(func, args, kwargs)
    if name in _OTHERS:
        return _OTHERS[name](func, *args, **kwargs)
    raise NotImplementedError(
        f"{name}(): no rule for strided nested tensors; use layout=torch.jagged, .unbind() or "
        ".to_padded_tensor()"
    )


_KEPT_FORMATS = (rushlight.preserve_format, rushlight.contiguous_format)
_FORMAT_NAMES = {rushlight.channels_last: "ChannelsLast", rushlight.channels_last_3d: "ChannelsLast3d"}


def _bufferwise(func, name, nested, args, kwargs):
    first = nested[0]
    if name == "clone" and kwargs.get("memory_format", rushlight.preserve_format) not in _KEPT_FORMATS:
        raise RuntimeError(
            "Nested tensor clone supports Preserve and Contiguous memory formats, called clone with memory "
            f"format: {_FORMAT_NAMES.get(kwargs['memory_format'])}"
        )
    for other in nested[1:]:
        if other._sizes != first._sizes:
            if name == "copy_":
                raise RuntimeError(
                    "copy_ only supports tensors that are the same size for Nested implementations, got "
                    f"sizes {first._sizes} and {other._sizes}"
                )
            raise RuntimeError(
                f"{name} does not support broadcasting when given a NestedTensor: sizes {first._sizes} and "
                f"{other._sizes}"
            )
    if any(x._places is not None for x in nested):
        checks.filled(name, nested, args, kwargs)
        if name.endswith("_") and not name.endswith("__"):
            return _in_place(func, name, args, kwargs)
        if name == "contiguous":
            return strided_from_list(first.unbind())
        if _packs(name, nested, kwargs):
            args = [packed(a) for a in args]
            nested = [a for a in args if isinstance(a, StridedNestedTensor)]
            first = nested[0]
        checks.same_places(name, nested)

    def operand(a):
        if isinstance(a, StridedNestedTensor):
            return plain(a)
        if isinstance(a, rushlight.Tensor) and a.dim() > 0:
            if name == "fill_":
                raise RuntimeError("fill_ only supports 0-dimension value tensor")
            kinds = "a nested self and non-nested other"
            if a is args[0]:
                kinds = "a non-nested self and nested other"
            raise RuntimeError(f"{name}: Expected both self and other to be nested, but got {kinds}")
        return a

    result = func(*map(operand, args), **{k: operand(v) for k, v in kwargs.items()})
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    if result is first or (name == "to" and result.data_ptr() == plain(first).data_ptr()):
        return first
    return first._like(result)


_PACKING = {"add", "sub", "rsub"}  # of two nested operands: in any places


def _packs(name, nested, kwargs):
    """Whether the components come to fill their buffers first."""
    return (name in _PACKING and len(nested) > 1) or (
        kwargs.get("memory_format") is rushlight.contiguous_format
    )


def packed(a):
    """A nested tensor whose components fill its buffer; anything else as it is."""
    if not isinstance(a, StridedNestedTensor) or a._places is None:
        return a
    return strided_from_list(a.unbind())


def _in_place(func, name, args, kwargs):
    """Component by component: the rest of the buffer is other tensors'."""
    target, *others = args
    rest = [a.unbind() if isinstance(a, StridedNestedTensor) else [a] * len(target) for a in others]
    for parts in zip(target.unbind(), *rest, strict=True):
        func(*parts, **kwargs)
    return target


def _componentwise(func, args, kwargs):
    first = next(a for a in [*args, *kwargs.values()] if isinstance(a, StridedNestedTensor))
    pick = lambda a, i: a.unbind()[i] if isinstance(a, StridedNestedTensor) else a  # noqa: E731
    return strided_from_list(
        [
            func(*(pick(a, i) for a in args), **{k: pick(v, i) for k, v in kwargs.items()})
            for i in range(len(first))
        ]
    )


def inner(name, x, dim, extra=0):
    dims = x.dim() + extra
    if not -dims <= dim < dims:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-dims}, {dims - 1}], but got {dim})"
        )
    if dim % dims == 0:
        if name == "transpose":
            raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
        if name == "squeeze":
            raise RuntimeError("For nested tensors, squeezing dimension 0 is not supported")
        if name in ("softmax", "log_softmax"):
            raise RuntimeError("Cannot apply softmax across nested dimension 0")
        raise RuntimeError(
            f"{name}(): not supported on dimension {dim} of a nested tensor with {dims} dimensions"
        )
    return dim % dims - 1


def _shifted(func, name, x, *args, dim=None, **kwargs):
    args = list(args)
    kwargs.pop("_stacklevel", None)
    if not len(x):
        return x
    dim = args.pop(0) if args else dim
    at = inner(name, x, dim)
    return strided_from_list([func(t, at, *args, **kwargs) for t in x.unbind()])


def _bmm(func, a, b):
    for t, name in ((a, "batch1"), (b, "batch2")):
        if t.dim() != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if len(a) != len(b):
        raise RuntimeError(
            f"Expected size for the 1st dimension of batch2 tensor to be: {len(a)} but got: {len(b)}."
        )
    pairs = list(zip(a.unbind(), b.unbind(), strict=True))
    for i, (x, y) in enumerate(pairs):
        if x.shape[1] != y.shape[0]:
            raise RuntimeError(
                f"{i}-th nested matrices in batch cannot be multiplied ({x.shape[0]}x{x.shape[1]} and "
                f"{y.shape[0]}x{y.shape[1]})"
            )
    return strided_from_list([x @ y for x, y in pairs])


def _cat(func, tensors, dim=0):
    if not all(isinstance(t, StridedNestedTensor) for t in tensors):
        raise RuntimeError("cat(): expected each tensor in given list to be nested")
    dims = tensors[0].dim()
    if not -dims <= dim < dims:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-dims}, {dims - 1}], but got {dim})"
        )
    if any(t._places is not None for t in tensors):
        if dim % dims:
            raise RuntimeError("cat(): only contiguous nested tensors are supported")
        raise RuntimeError("Expected each tensor in given list to be contiguous.")
    if dim % dims == 0:
        return strided_from_list([part for t in tensors for part in t.unbind()])
    inner = dim % dims - 1
    kept = [[(*size[:inner], *size[inner + 1 :]) for size in t._sizes] for t in tensors]
    if any(t.dim() != dims for t in tensors) or any(sizes != kept[0] for sizes in kept):
        raise RuntimeError(
            "cat(): expected all nested tensors to have matching ragged structures outside of the "
            f"concatenated dim, got {[t._sizes for t in tensors]}"
        )
    parts = zip(*(t.unbind() for t in tensors), strict=True)
    return strided_from_list([func(part, inner) for part in parts])


def _reduction(name):
    def reduce(func, x, dim=None, keepdim=False, *, dtype=None):
        if dim is None:
            return getattr(plain(packed(x)), name)(dtype=dtype)
        if not keepdim:
            raise RuntimeError("NestedTensor always requires keepdim=True for now.")
        dims = [dim] if isinstance(dim, int) else dim
        if any(d in (0, -x.dim()) for d in dims):
            raise RuntimeError(
                f"NestedTensor can only be reduced across the last dimensions, got dimension {dim}"
                if len(dims) == 1
                else f"NestedTensor only allows reduction of a single dimension with the batch, got {dim}"
            )
        inside = [inner(name, x, d) for d in dims]
        return strided_from_list([getattr(t, name)(inside, keepdim=True, dtype=dtype) for t in x.unbind()])

    return reduce


def _attention(func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **kwargs):
    for given, what in (
        (attn_mask is not None, "an explicit attn_mask is set"),
        (is_causal, "is_causal=True"),
    ):
        if given:
            raise RuntimeError(
                f"scaled_dot_product_attention(): strided nested tensors are not supported when {what}"
            )
    parts = zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    return strided_from_list(
        [func(*(t.unsqueeze(0) for t in part), dropout_p=dropout_p, **kwargs).squeeze(0) for part in parts]
    )


def _heads(
    func, query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
    mask=None, need_weights=True, average_attn_weights=True, mask_type=None,
):  # fmt: skip
    """Attention with its projections, over padded operands; the weights stay padded with zeros."""
    if mask is not None:
        raise RuntimeError("_native_multi_head_attention(): nested operands say themselves what is padding")
    lengths = [[size[0] for size in x._sizes] for x in (query, key)]
    given = {id(x): packed(x).to_padded_tensor(0.0) for x in (query, key, value)}
    padded = [given[id(x)] for x in (query, key, value)]
    steps = rushlight.arange(padded[1].size(1), device=padded[1].device)
    hidden = steps >= rushlight.tensor(lengths[1], device=steps.device)[:, None]
    mask, mask_type = (hidden, 1) if hidden.any() else (None, None)
    projections = qkv_weight, qkv_bias, proj_weight, proj_bias
    how = mask, need_weights, average_attn_weights, mask_type
    out, weights = func(*padded, embed_dim, num_head, *projections, *how)
    parts = [row[:length] for row, length in zip(out, lengths[0], strict=True)]
    return strided_from_list(parts), weights


def _equal(func, a, b):
    both = isinstance(a, StridedNestedTensor) and isinstance(b, StridedNestedTensor)
    return both and a._sizes == b._sizes and func(plain(packed(a)), plain(packed(b)))


def _deepcopy(func, x, memo):
    if id(x) not in memo:
        memo[id(x)] = StridedNestedTensor(plain(x).detach().clone(), x._sizes, x.requires_grad, x._places)
    return memo[id(x)]


_OTHERS = {
    "bmm": _bmm,
    "cat": _cat,
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "equal": _equal,
    "scaled_dot_product_attention": _attention,
    "_native_multi_head_attention": _heads,
    "__deepcopy__": _deepcopy,
    "_nested_tensor_size": lambda func, x: x._nested_tensor_size(),
}
