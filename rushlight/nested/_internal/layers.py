"""What layers of networks do with jagged nested tensors."""

import rushlight
from rushlight.nested._internal.composed import call
from rushlight.nested._internal.nested_tensor import NestedTensor, plain
from rushlight.nested._internal.ops import (
    check_same_cuts,
    from_padded,
    name_of,
    rule,
    to_padded,
    wrap_dim,
)

__all__ = ["call"]


@rule("softmax", "log_softmax", "softmin", "_softmax", "_log_softmax")
def _softmax(func, x, dim=None, *args, **kwargs):
    if dim is None:
        raise RuntimeError("softmax(): expected a dim for a nested tensor")
    dim, kwargs = wrap_dim("softmax", dim, x.dim()), {k: v for k, v in kwargs.items() if k != "_stacklevel"}
    if dim == 0:
        raise RuntimeError(
            "softmax(): not supported when reducing across the batch dimension for NestedTensor"
        )
    if dim != x._ragged_idx:
        return x._like(func(plain(x), dim - 1, *args, **kwargs))
    if x._lengths is not None:
        raise RuntimeError(
            "softmax(): not supported where lengths is not None if reducing across the ragged dimension for "
            "NestedTensor"
        )
    filler = float("inf") if name_of(func) == "softmin" else float("-inf")
    return from_padded(func(to_padded(x, filler), dim, *args, **kwargs), x)


@rule("linear")
def _linear(func, input, weight, bias=None):
    if not isinstance(input, NestedTensor) or input._ragged_idx == input.dim() - 1:
        raise RuntimeError(
            "linear(): expected a nested input whose last dimension is not ragged, and dense weights"
        )
    return input._like(func(plain(input), weight, bias))


@rule("layer_norm", "rms_norm")
def _norm(func, input, normalized_shape, weight=None, *args, **kwargs):
    name, dims = name_of(func), len(normalized_shape)
    first = input.dim() - dims
    if input.dim() <= 2:
        raise RuntimeError(f"{name}(): not supported for NestedTensor objects with 2 or fewer dimensions")
    if first <= 0:
        raise RuntimeError(
            f"{name}(): not supported when normalizing over the batch dimension for NestedTensor"
        )
    if first > input._ragged_idx:
        return input._like(func(plain(input), normalized_shape, weight, *args, **kwargs))
    if input._lengths is not None:
        raise RuntimeError(
            f"{name}(): not supported where lengths is not None if operating on the ragged dimension for "
            "NestedTensor"
        )
    if weight is not None or any(isinstance(a, rushlight.Tensor) for a in (*args, *kwargs.values())):
        raise RuntimeError(f"{name}(): no weight or bias has the ragged size of a NestedTensor")
    rows = [func(t, t.shape[first - 1 :], None, *args, **kwargs) for t in input.unbind()]
    return input._like(rushlight.cat(rows, input._ragged_idx - 1))


@rule("matmul", "bmm", "__matmul__", "__rmatmul__", "mm")
def _matmul(func, a, b):
    if name_of(func) == "__rmatmul__":
        a, b = b, a
    if isinstance(a, NestedTensor) and isinstance(b, NestedTensor):
        contracted = a._ragged_idx == a.dim() - 1 and b._ragged_idx == b.dim() - 2 and a._ragged == b._ragged
        if not contracted:
            raise RuntimeError(
                f"matmul(): not supported between inputs of shapes {tuple(a.shape)} and {b.shape}"
            )
        return rushlight.stack([x @ y for x, y in zip(a.unbind(), b.unbind(), strict=True)])
    if isinstance(a, NestedTensor) and a._ragged_idx < a.dim() - 1:
        if b.dim() <= 2:
            return a._like(plain(a) @ b, a._ragged_idx)
        if b.dim() == a.dim() and b.shape[0] == len(a):
            products = [x @ y for x, y in zip(a.unbind(), b.unbind(), strict=True)]
            return a._like(rushlight.cat(products, a._ragged_idx - 1))
    shapes = [tuple(t.shape) for t in (a, b)]
    raise RuntimeError(f"matmul(): not supported between inputs of shapes {shapes[0]} and {shapes[1]}")


@rule("scaled_dot_product_attention")
def _attention(
    func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Component by component: no work on padding."""
    tensors = query, key, value
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    if all(isinstance(t, NestedTensor) and t.dim() > 3 and t._ragged_idx == 1 for t in tensors):
        for t in tensors:  # (batch, j, length, size): each of all j is a sequence
            check_same_cuts("scaled_dot_product_attention", query, t)
        return query._like(func(*map(plain, tensors), attn_mask=attn_mask, **options))
    if not all(isinstance(t, NestedTensor) and t.dim() == 4 and t._ragged_idx == 2 for t in tensors):
        raise RuntimeError(
            "scaled_dot_product_attention(): expected query, key and value to be nested with shape "
            f"(batch, heads, j, size), got shapes {[tuple(t.shape) for t in tensors]}"
        )
    if attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention(): attn_mask is not supported for NestedTensor")
    if key._ragged != value._ragged or len(key) != len(query):
        raise RuntimeError("scaled_dot_product_attention(): key and value must have the same lengths")
    results = [
        func(*(t.unsqueeze(0) for t in parts), **options).squeeze(0)
        for parts in zip(*(t.unbind() for t in tensors), strict=True)
    ]
    return query._like(rushlight.cat(results, 1).transpose(0, 1).contiguous().transpose(0, 1))


@rule("dropout")
def _dropout(func, input, *args, **kwargs):
    return input._like(func(plain(input), *args, **kwargs))
