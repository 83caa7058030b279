"""Nested tensors: batches of tensors of different sizes, packed (``torch.jagged``) or as one buffer
(``torch.strided``)."""

import rushlight
from rushlight._command.submodules import submodules_of

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def _check_layout(name, layout):
    if layout not in (rushlight.strided, rushlight.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout} ({name})")
    return layout is rushlight.jagged


def nested_tensor(
    tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A leaf that holds copies of the tensors (or nested lists of numbers) in the list.

    Args:
        tensor_list: the components; with ``layout=torch.jagged`` they differ in at most one size.
        layout: ``torch.strided`` (the default) or ``torch.jagged``.
    """
    from rushlight.nested._internal.nested_tensor import jagged_from_list
    from rushlight.nested._internal.strided import strided_from_list

    jagged = _check_layout("nested_tensor", rushlight.strided if layout is None else layout)
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError(
            f"nested_tensor(): Expected first argument to be a list, got {type(tensor_list).__name__}"
        )
    with rushlight.no_grad():
        tensors = [
            t.detach().clone() if isinstance(t, rushlight.Tensor) else rushlight.tensor(t)
            for t in tensor_list
        ]
        if not jagged:
            return strided_from_list(tensors, dtype, device, requires_grad)
        return jagged_from_list(tensors, None, dtype, device, requires_grad)[0]


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor of a list of tensors, or of the rows of one; gradients flow back to them."""
    from rushlight.nested._internal.nested_tensor import jagged_from_list
    from rushlight.nested._internal.strided import strided_from_list

    jagged = _check_layout("as_nested_tensor", rushlight.strided if layout is None else layout)
    if isinstance(ts, rushlight.Tensor) and ts.is_nested:
        if (ts.layout is rushlight.jagged) is not jagged:
            raise RuntimeError(
                "as_nested_tensor(): Converting between nested tensor layouts is not supported"
            )
        same = dtype in (None, ts.dtype) and (device is None or rushlight.device(device) == ts.device)
        return ts if same else ts.to(device=device, dtype=dtype)
    if not isinstance(ts, (list, tuple, rushlight.Tensor)):
        raise TypeError("as_nested_tensor(): Expected first argument to be a list, tuple, or tensor")
    if isinstance(ts, rushlight.Tensor) and ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if isinstance(ts, rushlight.Tensor):
        return _of_rows(ts.to(device=device, dtype=dtype), jagged)
    if jagged:
        return jagged_from_list(list(ts), None, dtype, device)[0]
    return strided_from_list(list(ts), dtype, device)


def _of_rows(batch, jagged):
    """The rows of a tensor, as a view where they lie one after the other."""
    from rushlight.nested._internal.nested_tensor import NestedTensor
    from rushlight.nested._internal.strided import StridedNestedTensor

    count, length, *rest = batch.shape
    if not jagged:
        return StridedNestedTensor(batch.reshape(-1), [batch.shape[1:]] * count)
    offsets = rushlight.arange(count + 1, device=batch.device) * length
    extremes = {"max_seqlen": length, "min_seqlen": length}
    return NestedTensor(batch.reshape(count * length, *rest), offsets, _metadata_cache=extremes)


def nested_tensor_from_jagged(
    values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None
):
    """A view of packed values: component i is ``values[offsets[i] : offsets[i + 1]]``, or the first
    ``lengths[i]`` elements of that."""
    from rushlight.nested._internal.nested_tensor import NestedTensor

    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = rushlight.nn.functional.pad(lengths.cumsum(0), (1, 0)), None
    ragged = 1 if jagged_dim is None else jagged_dim
    if values.dim() < 1 or not 1 <= ragged <= values.dim():
        raise RuntimeError(
            f"nested_tensor_from_jagged(): no dimension {ragged} in values of shape {values.shape}"
        )
    _check_cuts(offsets, lengths, values.shape[ragged - 1])
    extremes = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    known = {name: n for name, n in extremes.items() if n is not None}
    return NestedTensor(values, offsets, lengths=lengths, _ragged_idx=ragged, _metadata_cache=known)


def _check_cuts(offsets, lengths, total):
    if offsets.dim() != 1 or offsets.numel() < 1 or (lengths is not None and lengths.dim() != 1):
        raise RuntimeError("nested_tensor_from_jagged(): offsets and lengths must be vectors")
    if lengths is not None and lengths.numel() != offsets.numel() - 1:
        raise RuntimeError("nested_tensor_from_jagged(): expected one length for each component")
    steps = offsets.diff()
    if offsets[0] < 0 or offsets[-1] > total or (steps < 0).any():
        raise RuntimeError(
            f"nested_tensor_from_jagged(): offsets must rise from 0 to at most {total}, got "
            f"{offsets.tolist()}"
        )
    if lengths is not None and ((lengths < 0).any() or (offsets[:-1] + lengths > total).any()):
        raise RuntimeError(
            "nested_tensor_from_jagged(): a component of these lengths reaches past the values"
        )


def narrow(tensor, dim, start, length, layout=rushlight.strided):
    """Of each row of `tensor` the part ``[start, start + length)`` of dimension 1; `start` and `length` may
    be tensors with one number a row. With ``torch.jagged`` it is a view."""
    from rushlight.nested._internal.nested_tensor import jagged_from_tensor_and_lengths
    from rushlight.nested._internal.strided import strided_from_list

    jagged = _check_layout("narrow", layout)
    if not isinstance(start, (int, rushlight.Tensor)) or not isinstance(length, (int, rushlight.Tensor)):
        raise RuntimeError("start and length must be ints or tensors")
    if jagged and dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    if tensor.dim() < 2 or dim < 1:
        raise RuntimeError("narrow: expected a batch and a dimension after it")
    batch = tensor.shape[0]
    start, length = (
        x if isinstance(x, rushlight.Tensor) else rushlight.full((batch,), x, dtype=rushlight.int64)
        for x in (start, length)
    )
    if jagged:
        return jagged_from_tensor_and_lengths(tensor, start, length)[0]
    pieces = zip(tensor.unbind(), start.tolist(), length.tolist(), strict=True)
    return strided_from_list([row.narrow(dim - 1, first, n) for row, first, n in pieces])


def masked_select(tensor, mask):
    """Of each row the elements where `mask` is set, as a jagged nested tensor."""
    from rushlight.nested._internal.nested_tensor import NestedTensor

    if tensor.layout is not rushlight.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout is not rushlight.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided mask, given: {mask.layout}")
    values = tensor.masked_select(mask)
    lengths = mask.expand(rushlight.broadcast_shapes(tensor.shape, mask.shape)).sum(-1).flatten()
    return NestedTensor(values, rushlight.nn.functional.pad(lengths.cumsum(0), (1, 0)))


def to_padded_tensor(input, padding, output_size=None, out=None):
    """A dense tensor of the largest sizes (or `output_size`), with `padding` where a component ends."""
    if not input.is_nested:
        raise RuntimeError("to_padded_tensor: expected a nested tensor")
    result = input.to_padded_tensor(padding, output_size)
    return result if out is None else out.resize_(result.shape).copy_(result)


__getattr__ = submodules_of(__name__)
