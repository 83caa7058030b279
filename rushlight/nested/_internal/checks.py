"""What operations on the components of strided nested tensors refuse, in PyTorch's words."""

import functools

import rushlight
from rushlight._operators.traits import names_of

__all__ = ["OF_COMPONENTS", "cut", "filled", "reshaped", "same_places"]


def _is_nested(t):
    return getattr(t, "is_nested", False)


def same_places(name, nested):
    """Operands that are computed buffer by buffer."""
    places = [
        (x._nested_tensor_strides().tolist(), x._nested_tensor_storage_offsets().tolist()) for x in nested
    ]
    for part, word in enumerate(("strides", "offsets")):
        if any(other[part] != places[0][part] for other in places[1:]):
            raise RuntimeError(f"{name} requires {word} to match when given NestedTensors")


def filled(name, nested, args, kwargs):
    """Functions of one operand alone compute the whole buffer, with what lies between the components."""
    name = name[:-1] if name.endswith("_") else name
    numbers = (rushlight.Tensor, int, float, complex)
    operands = [a for a in [*args, *kwargs.values()] if isinstance(a, numbers) and not isinstance(a, bool)]
    if len(operands) == 1 and nested[0]._places is not None and name in _of_one_operand():
        raise RuntimeError("NestedTensor must be contiguous to get buffer.")


@functools.cache
def _of_one_operand():
    return names_of(lambda traits: traits.elementwise and traits.family in ("pointwise", "composite"))


def cut(name, x, dim, whole=None):
    """Pieces along `dim`, whose sizes are `whole` together."""
    word = "Chunk" if name == "chunk" else name
    if dim not in (-1, x.dim() - 1):
        raise RuntimeError(f"{word} for nested tensors is currently only supported for the last dimension.")
    if x._places is not None:
        raise RuntimeError(f"{name} expects `self` to be contiguous.")
    for size in x._sizes:
        if whole is not None and size[-1] != whole:
            raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {size[-1]}")


def reshaped(name, x, sizes):
    """Sizes that components of `x` cannot be brought to."""
    if not sizes:
        raise RuntimeError(f"{name}: shape '[]' is invalid for a nested tensor")
    if not len(x):
        raise RuntimeError(f"{name}: empty nested tensor cannot be reshaped")
    if sizes[0] != len(x):
        raise RuntimeError(
            f"{name}: For now nested {name} cannot change or infer the implicit batch dimension of {len(x)}, "
            f"got {sizes}"
        )
    if sizes[1:].count(-1) > 1:
        raise RuntimeError(f"{name}: only one dimension can be inferred, got {sizes}")


def _linear(input, weight, bias=None):
    if getattr(input, "_places", None) is not None:
        raise RuntimeError("for now linear only supports contiguous nested tensor")
    if _is_nested(weight):
        raise RuntimeError("Linear does not support nested weight when input is a nested tensor.")
    if input.dim() < 3 or weight.dim() != 2:
        raise RuntimeError(
            "Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
            f"{input.dim()}. Dense tensor dim: {weight.dim()}"
        )
    last = {size[-1]: None for size in input._sizes}
    if len(last) > 1:
        raise RuntimeError(
            "Expected all tensors in nested tensor to have the same trailing dimension, instead last "
            f"dimension equals: {', '.join(map(str, last))}"
        )
    for n in last:
        if n != weight.shape[1]:
            raise RuntimeError(
                "Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' to "
                f"equal 'weight.size(1), but got: last_dim = {n}, and weight.size(1) = {weight.shape[1]}"
            )


def _matmul(a, b):
    if not (_is_nested(a) and _is_nested(b)):
        dense = b if _is_nested(a) else a
        if dense.dim() < 2:
            kinds = "nested self and non-nested" if dense is b else "non-nested self and nested"
            raise RuntimeError(f"Expected both to be nested, but got a {kinds} other")
        return
    for t, place in ((a, "1st"), (b, "2nd")):
        if t.dim() < 3:
            raise RuntimeError(
                f"matmul: For nested tensors, only inputs with >= 3 dims are currently supported. {place} "
                f"input has rank: {t.dim()}"
            )
    if len(a) != len(b):
        raise RuntimeError(
            f"matmul: Expected size for the 1st dimension of 2nd input tensor to be: {len(a)} but got: "
            f"{len(b)}."
        )
    for x, y in zip(a._sizes, b._sizes, strict=True):
        if x[:-2] != y[:-2]:
            raise RuntimeError(
                f"matmul: For nested tensors, batch dimensions must have the same sizes, got {x} and {y}"
            )
        if x[-1] != y[-2]:
            raise RuntimeError(f"matmul: Nested tensors cannot be matrix multiplied, got sizes {x} and {y}")


def _layer_norm(input, normalized_shape, *args, **kwargs):
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    for d, n in enumerate(shape):
        found = {size[d - len(shape)] if len(size) >= len(shape) else None for size in input._sizes}
        if len(found) > 1 or None in found:
            raise RuntimeError(
                f"normalized_shape extends into irregular dimensions for the nested tensor: {shape} for "
                f"components of sizes {input._sizes}"
            )
        if found and found != {n}:
            raise RuntimeError(
                f"The shape at dimension {d} of normalized_shape {shape} doesn't match the nested tensor, "
                f"which has {found.pop()} there"
            )


OF_COMPONENTS = {
    "linear": _linear,
    "matmul": _matmul,
    "__matmul__": _matmul,
    "layer_norm": _layer_norm,
    "rms_norm": _layer_norm,
}
