"""Views of strided nested tensors: they share the buffer, and their components lie elsewhere in it."""

import rushlight
from rushlight.nested._internal import checks
from rushlight.nested._internal.nested_tensor import plain
from rushlight.nested._internal.places import settled
from rushlight.nested._internal.strided import StridedNestedTensor, inner, strided_from_list

__all__ = ["RULES"]


def _placed(x, parts):
    """The nested view of the buffer of `x` whose components lie where `parts` do."""
    buffer = plain(x)
    first, sizes = buffer.storage_offset(), [t.shape for t in parts]
    places = settled(buffer, sizes, [t.stride() for t in parts], [t.storage_offset() - first for t in parts])
    view = StridedNestedTensor(buffer, sizes, places=places)
    view._source = x if x._source is None else x._source
    return view


def _parts(x):
    return [t.detach() for t in x.unbind()]


def _each(x, function):
    return _placed(x, [function(t) for t in _parts(x)])


def _transpose(func, x, dim0, dim1):
    dims = [inner("transpose", x, dim) for dim in (dim0, dim1)]
    return _each(x, lambda t: t.transpose(*dims))


def _unsqueeze(func, x, dim):
    at = inner("unsqueeze", x, dim, 1)
    return _each(x, lambda t: t.unsqueeze(at))


def _squeeze(func, x, dim=None):
    if dim is None:
        raise RuntimeError("For nested tensors, squeeze without the dim argument is not supported")
    if x.dim() == 2 and set(x._sizes) == {(1,)}:
        raise RuntimeError("For nested tensors, squeezing a nested tensor of singleton is not supported")
    at = inner("squeeze", x, dim)
    return _each(x, lambda t: t.squeeze(at))


def _unflatten(func, x, dim, sizes):
    at = inner("unflatten", x, dim)
    return _each(x, lambda t: t.unflatten(at, sizes))


def _pieces(x, cut):
    """The pieces that `cut` gives of each component, each a nested view."""
    return tuple(_placed(x, parts) for parts in zip(*map(cut, _parts(x)), strict=True))


def _chunk(func, x, chunks, dim=0):
    checks.cut("chunk", x, dim)
    if any(size[-1] % chunks for size in x._sizes):
        raise RuntimeError(
            "Chunk for nested tensors is only supported for nested tensors with trailing dimension divisible "
            f"by chunks. got: {[size[-1] for size in x._sizes]} % {chunks} != 0"
        )
    return _pieces(x, lambda t: t.chunk(chunks, -1))


def _split(func, x, sizes, dim=0):
    if isinstance(sizes, int):
        checks.cut("split", x, dim)
        return _pieces(x, lambda t: t.split(sizes, -1))
    checks.cut("split_with_sizes", x, dim, sum(sizes))
    return _pieces(x, lambda t: t.split(sizes, -1))


def _narrow(func, x, dim, start, length):
    if dim not in (0, -x.dim()):
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got dim={dim}")
    if x._places is not None:
        raise RuntimeError("narrow(): only contiguous nested tensors supported")
    if start < 0 or length < 0 or start + length > len(x):
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({len(x)}).")
    counts = [rushlight.Size(size).numel() for size in x._sizes]
    first, last = sum(counts[:start]), sum(counts[: start + length])
    view = StridedNestedTensor(plain(x)[first:last], x._sizes[start : start + length])
    view._source = x if x._source is None else x._source
    return view


def _select(func, x, dim, index):
    if dim in (0, -x.dim()):
        return x.unbind()[index]
    at = inner("select", x, dim)
    return _each(x, lambda t: t.select(at, index))


def _getitem(func, x, index):
    """A number for the batch, and any index of that component; or ``...`` alone."""
    first, *rest = index if isinstance(index, tuple) else (index,)
    if first is Ellipsis and not rest:
        return x
    if first is Ellipsis:
        if x.dim() - len(rest) <= 1:
            raise RuntimeError("__getitem__(): the batch of a nested tensor is indexed by a number or ...")
        return _indexed(x, (Ellipsis, *rest))
    if isinstance(first, int):
        return x.unbind()[first][tuple(rest)] if rest else x.unbind()[first]
    raise NotImplementedError("__getitem__(): strided nested tensors take a number for the batch")


def _indexed(x, index):
    parts = [t[index] for t in _parts(x)]
    if all(t._is_view() for t in parts):
        return _placed(x, parts)
    return strided_from_list([t[index] for t in x.unbind()])


def _reshape(func, x, *sizes):
    from rushlight.nested._internal.ops import name_of

    name = name_of(func)
    wanted = list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else list(sizes)
    checks.reshaped(name, x, wanted)

    def shape(t):  # -1 keeps the size that the component has there, as it may differ
        return [t.shape[d] if n == -1 and d < t.dim() else n for d, n in enumerate(wanted[1:])]

    parts = [getattr(t, name)(shape(t)) for t in _parts(x)]
    start = plain(x).untyped_storage().data_ptr()
    if all(t.untyped_storage().data_ptr() == start for t in parts):
        return _placed(x, parts)
    return strided_from_list([t.reshape(shape(t)) for t in x.unbind()])


RULES = {
    "transpose": _transpose,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "unflatten": _unflatten,
    "chunk": _chunk,
    "split": _split,
    "split_with_sizes": _split,
    "narrow": _narrow,
    "select": _select,
    "__getitem__": _getitem,
    "reshape": _reshape,
    "view": _reshape,
}
