"""Jagged nested tensors: a batch of tensors of different length as one packed tensor.

A `NestedTensor` *is* its packed values (an alias of them, so that autograd, hooks and memory are those of a
plain tensor), and shows another shape: ``[B, j1, ...]``, where ``j1`` stands for the lengths. Functions reach
it through ``__torch_function__``; `rushlight.nested._internal.ops` says what each does with the values."""

import itertools

import rushlight
from rushlight import _C
from rushlight.overrides import is_operator_method, redispatch_function
from rushlight.utils.weak import WeakIdKeyDictionary

__all__ = [
    "NestedInt",
    "NestedTensor",
    "buffer_from_jagged",
    "jagged_from_list",
    "jagged_from_tensor_and_lengths",
    "nested_from_padded",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]

_numbers = itertools.count(1)
_ragged_sizes = WeakIdKeyDictionary()


class NestedInt(rushlight.SymInt):
    """The size of a ragged dimension: equal to itself alone, whatever the lengths.

    It has no ``__index__``, so that C code does not take it for a number before the class is asked."""

    def __init__(self, number, coefficient=1):
        self._number, self._coefficient = number, coefficient

    def __repr__(self):
        return f"j{self._number}" if self._coefficient == 1 else f"{self._coefficient}*j{self._number}"

    def __mul__(self, other):
        return (
            NestedInt(self._number, self._coefficient * other) if isinstance(other, int) else NotImplemented
        )

    __rmul__ = __mul__

    def __eq__(self, other):
        return isinstance(other, NestedInt) and vars(self) == vars(other)

    def __hash__(self):
        return hash((NestedInt, self._number, self._coefficient))

    def __ge__(self, other):
        return self == other or (isinstance(other, int) and other <= 2)

    def __gt__(self, other):
        return isinstance(other, int) and other < 2

    def __int__(self):
        raise RuntimeError(
            f"the ragged size {self} of a nested tensor is not one number; work on .unbind(), .values() or "
            ".to_padded_tensor()"
        )


_C._set_ragged_size(NestedInt)


def plain(tensor):
    """The packed tensor that a nested one is."""
    with _C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(rushlight.Tensor)


def _number_of(offsets, lengths):
    """One ragged size for each tensor of offsets (or lengths, where there are holes)."""
    key = offsets if lengths is None else lengths
    if key not in _ragged_sizes:  # beside the tensors: an attribute of theirs would go into files
        _ragged_sizes[key] = NestedInt(next(_numbers))
    return _ragged_sizes[key]


def _rebuild_njt(constructor_kwargs):
    """What files call. PyTorch keeps the longest and the shortest length as sizes of empty tensors."""
    parts = dict(constructor_kwargs)
    tensors = [parts.get(name) for name in ("values", "offsets", "lengths") if parts.get(name) is not None]
    if len(tensors) < 2 or not all(type(t) is rushlight.Tensor for t in tensors):
        raise RuntimeError("a jagged nested tensor is made of values, offsets and lengths that are tensors")
    extremes = parts.pop("_metadata_cache", None) or {}
    sizes = {k: n.shape[0] if isinstance(n, rushlight.Tensor) else n for k, n in extremes.items()}
    return NestedTensor(**parts, _metadata_cache=sizes)


class NestedTensor(rushlight.Tensor):
    """A nested tensor of layout ``torch.jagged``; made by the functions of ``torch.nested``."""

    _ragged_idx: int

    def __new__(
        cls, values, offsets, *, lengths=None, _ragged_idx=1, _metadata_cache=None, requires_grad=False
    ):
        """`values` whose dimension ``_ragged_idx - 1`` is cut at `offsets`."""
        if offsets is None or values.dim() < _ragged_idx:
            raise RuntimeError("NestedTensor: expected values with a ragged dimension, and offsets")
        with _C.DisableTorchFunctionSubclass():
            self = values.as_subclass(cls)
            if requires_grad:
                self = self.detach().as_subclass(cls).requires_grad_()
        self._offsets, self._lengths, self._ragged_idx = offsets, lengths, _ragged_idx
        self._metadata_cache = dict(_metadata_cache or {})
        return self

    def __init__(self, *args, **kwargs):
        pass

    def _like(self, values, ragged_idx=None):
        """Other values cut at the same places."""
        return NestedTensor(
            values,
            self._offsets,
            lengths=self._lengths,
            _ragged_idx=self._ragged_idx if ragged_idx is None else ragged_idx,
            _metadata_cache=self._metadata_cache,
        )

    # --- shape ------------------------------------------------------------------------------------

    is_nested = property(lambda self: True)
    layout = property(lambda self: rushlight.jagged)
    ndim = property(lambda self: self.dim())
    _ragged = property(lambda self: _number_of(self._offsets, self._lengths))

    @property
    def shape(self):
        """The batch, and the values' sizes with the ragged size in its place."""
        sizes = list(plain(self).shape)
        sizes[self._ragged_idx - 1] = self._ragged
        return rushlight.Size((self._offsets.shape[0] - 1, *sizes))

    _size = shape

    def size(self, dim=None):
        """The shape, or the size of one dimension; that of the ragged one is symbolic."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim=None):
        """The values' strides after that of the batch."""
        inner = plain(self).stride()
        first = self._ragged * inner[0] if self._ragged_idx == 1 else self._ragged
        strides = (first, *inner)
        return strides if dim is None else strides[dim]

    def dim(self):
        """One more than the values have."""
        return plain(self).dim() + 1

    def __len__(self):
        return self._offsets.shape[0] - 1

    def _component_lengths(self):
        return self._offsets.diff() if self._lengths is None else self._lengths

    def numel(self):
        """The number of elements that belong to a component."""
        values = plain(self)
        if self._lengths is None:
            return values.numel()
        return int(self._lengths.sum()) * (values.numel() // max(values.shape[self._ragged_idx - 1], 1))

    def is_contiguous(self, memory_format=rushlight.contiguous_format):
        """Whether the values are contiguous, and the components leave no holes in them."""
        return self._lengths is None and plain(self).is_contiguous()

    # --- parts ------------------------------------------------------------------------------------

    def values(self):
        """The packed values; gradients flow through them."""
        return plain(self)

    _values = property(values)

    def offsets(self):
        """Where each component starts, and where the last one ends."""
        return self._offsets

    def lengths(self):
        """The components' lengths, where they leave holes between them; otherwise None."""
        return self._lengths

    def _extreme(self, name, function):
        if name not in self._metadata_cache:
            lengths = self._component_lengths()
            self._metadata_cache[name] = int(function(lengths)) if lengths.numel() else 0
        return self._metadata_cache[name]

    _max_seqlen = property(lambda self: self._extreme("max_seqlen", rushlight.max))
    _min_seqlen = property(lambda self: self._extreme("min_seqlen", rushlight.min))
    _maybe_max_seqlen = property(lambda self: self._metadata_cache.get("max_seqlen"))
    _maybe_min_seqlen = property(lambda self: self._metadata_cache.get("min_seqlen"))

    def _get_max_seqlen(self):
        return self._max_seqlen

    def _get_min_seqlen(self):
        return self._min_seqlen

    def _view_func(self, new_base):
        """The same view of another tensor that has the form of this one's base."""
        values, base = self._values, self._base
        if base is None:
            raise RuntimeError("_view_func() can only be called on views")
        if new_base.shape != base.shape or new_base.stride() != base.stride():
            raise RuntimeError(
                f"_view_func(): expected a tensor of the form of {base.shape}, got {new_base.shape}"
            )
        place = values.storage_offset() - base.storage_offset() + new_base.storage_offset()
        return self._like(new_base.as_strided(values.shape, values.stride(), place))

    def _known_extreme(self, name):
        """A known length as PyTorch keeps it, the size of an empty tensor."""
        found = self._metadata_cache.get(name)
        return None if found is None else plain(self).new_empty(found, 0)

    _max_seqlen_tensor = property(lambda self: self._known_extreme("max_seqlen"))
    _min_seqlen_tensor = property(lambda self: self._known_extreme("min_seqlen"))

    def unbind(self, dim=0):
        """The components, as views of the values."""
        if dim not in (0, -self.dim()):
            raise RuntimeError(
                f"unbind(): only the batch dimension of a NestedTensor can be unbound, got dim={dim}"
            )
        values, at = plain(self), self._ragged_idx - 1
        starts, lengths = self._offsets[:-1].tolist(), self._component_lengths().tolist()
        ends = [start + n for start, n in zip(starts, lengths, strict=True)]
        if self._ragged_idx < 1 or max(ends, default=0) > values.shape[at]:
            raise RuntimeError(
                f"unbind(): nested tensor offsets and lengths do not match ragged_idx {self._ragged_idx}: a "
                f"component is out of bounds of values of shape {tuple(values.shape)}"
            )
        return tuple(values.narrow(at, start, n) for start, n in zip(starts, lengths, strict=True))

    def __iter__(self):
        return iter(self.unbind())

    def to_padded_tensor(self, padding, output_size=None):
        """The components in one dense tensor, `padding` where one is shorter."""
        from rushlight.nested._internal.ops import to_padded

        return to_padded(self, padding, output_size)

    # Called with the ragged size, which is no number for the methods in C.
    def view(self, *sizes):
        """Other sizes around the batch and the ragged dimension: ``view(B, -1, heads, size)``."""
        return self.__torch_function__(rushlight.Tensor.view, (), (self, *sizes))

    def reshape(self, *sizes):
        """As :meth:`view`; copies where it has to."""
        return self.__torch_function__(rushlight.Tensor.reshape, (), (self, *sizes))

    def expand(self, *sizes):
        """Dimensions of size 1, neither batch nor ragged, repeated."""
        return self.__torch_function__(rushlight.Tensor.expand, (), (self, *sizes))

    data = property(lambda self: self.detach())
    mT = property(lambda self: self.transpose(-2, -1))

    @property
    def T(self):
        """Refused: the batch stays in front."""
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")

    @property
    def grad(self):
        """The gradient, a nested tensor of the same lengths."""
        with _C.DisableTorchFunctionSubclass():
            found = rushlight.Tensor.grad.__get__(self)
        return None if found is None else self._gradient(found)

    @grad.setter
    def grad(self, value):
        with _C.DisableTorchFunctionSubclass():
            rushlight.Tensor.grad.__set__(self, plain(value) if isinstance(value, NestedTensor) else value)

    def _gradient(self, values):
        return values if isinstance(values, NestedTensor) else self._like(values)

    def __repr__(self, *, tensor_contents=None):
        grad = ", requires_grad=True" if self.requires_grad else ""
        grad = f", grad_fn={self.grad_fn}" if self.grad_fn else grad
        return (
            f"NestedTensor(size={tuple(self.shape)}, offsets={self._offsets}{grad}, "
            f"contiguous={self.is_contiguous()})"
        )

    def __reduce_ex__(self, protocol):
        parts = {
            "values": plain(self.detach()),
            "offsets": self._offsets,
            "lengths": self._lengths,
            "_ragged_idx": self._ragged_idx,
            "_metadata_cache": {k: self._offsets.new_empty(n, 0) for k, n in self._metadata_cache.items()},
            "requires_grad": self.requires_grad,
        }
        return _rebuild_njt, (parts,)

    def __setstate__(self, state):
        """What PyTorch's files tell besides, `__new__` was told already."""

    def tolist(self):
        """Refused, as in PyTorch: ``unbind`` gives tensors that have lists."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def numpy(self, *, force=False):
        """Refused, as in PyTorch."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from rushlight.nested._internal.layers import call

        if is_operator_method(func):
            return redispatch_function(func, types, args, kwargs or {})
        return call(func, args, kwargs or {})


def _as_components(tensors, dtype, device):
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    if len({(t.device, t.dtype) for t in tensors}) > 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dtype and device"
        )
    return [t.to(device=device, dtype=dtype) for t in tensors]


def jagged_from_list(tensors, offsets=None, dtype=None, device=None, requires_grad=False):
    """The nested tensor of some tensors that differ in at most one size, and its offsets."""
    tensors = _as_components(tensors, dtype, device)
    shapes = [tuple(t.shape) for t in tensors]
    if not any(shapes):
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    if len({len(shape) for shape in shapes}) > 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dim, got shapes "
            f"{shapes}"
        )
    ragged = [d for d, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1] or [0]
    if len(ragged) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the "
            "jagged layout only allows for a single ragged dimension. For example: (B, *, D_0, ..., D_N). "
            f"Got {shapes}"
        )
    lengths = [shape[ragged[0]] for shape in shapes]
    values = rushlight.cat(tensors, ragged[0])
    if offsets is None:
        offsets = rushlight.tensor(
            [0, *itertools.accumulate(lengths)], dtype=rushlight.int64, device=values.device
        )
    extremes = {"max_seqlen": max(lengths), "min_seqlen": min(lengths)}
    nested = NestedTensor(
        values, offsets, _ragged_idx=ragged[0] + 1, _metadata_cache=extremes, requires_grad=requires_grad
    )
    return nested, offsets


def jagged_from_tensor_and_lengths(tensor, starts, lengths):
    """Of each row of a batch the part of `lengths` elements from `starts` on, as a view."""
    batch, width = tensor.shape[:2]
    values = tensor.flatten(0, 1)
    begins = rushlight.arange(batch) * width + starts
    if batch and ((starts < 0).any() or (lengths < 0).any() or (starts + lengths > width).any()):
        raise RuntimeError(f"narrow: start + length exceeds the size {width} of the dimension")
    ends = begins + lengths
    whole = batch > 0 and rushlight.equal(ends[:-1], begins[1:])
    if whole:  # one row after the other
        values = values[int(begins[0]) : int(ends[-1])]
        offsets = rushlight.cat([begins, ends[-1:]]) - begins[0]
    else:
        offsets = rushlight.cat([begins, begins.new_full((1,), batch * width)])
    nested = NestedTensor(values, offsets, lengths=None if whole else lengths)
    return nested, offsets, None if whole else lengths


def check_same_kind(name, args):
    """`is_same_size` compares nested tensors with nested tensors."""
    if name != "is_same_size" or all(getattr(a, "is_nested", False) for a in args):
        return
    kinds = ["is nested" if getattr(a, "is_nested", False) else "is not nested" for a in args]
    raise RuntimeError(
        f"Expected both self and other to be nested tensors. Self {kinds[0]}. While Other {kinds[1]}."
    )


def nested_view_from_values_offsets(values, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None):
    """A nested view of `values` that are cut at `offsets`."""
    return nested_view_from_values_offsets_lengths(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values, offsets, lengths, ragged_idx=1, min_seqlen=None, max_seqlen=None
):
    """The same, of components that leave holes between them."""
    extremes = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    known = {name: n for name, n in extremes.items() if n is not None}
    return NestedTensor(values, offsets, lengths=lengths, _ragged_idx=ragged_idx, _metadata_cache=known)


def buffer_from_jagged(jagged):
    """The packed values of a nested tensor, as a view."""
    return plain(jagged)


def nested_from_padded(padded, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None, sum_S=None):
    """The components that a padded tensor holds; `offsets` tell their lengths."""
    rows = padded.movedim(ragged_idx, 1)
    component, place = component_places(offsets, int(offsets[-1]) if sum_S is None else sum_S)
    values = rows[component, place].movedim(0, ragged_idx - 1)
    return nested_view_from_values_offsets(values, offsets, ragged_idx, min_seqlen, max_seqlen)


def component_places(offsets, total):
    """Of each packed element the number of its component, and its place in it."""
    steps = rushlight.arange(total, device=offsets.device)
    component = rushlight.searchsorted(offsets[1:].contiguous(), steps, right=True)
    component = component.clamp(max=max(offsets.shape[0] - 2, 0))
    return component, steps - offsets[component]
