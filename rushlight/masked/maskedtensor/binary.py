"""Functions of two tensors, one or both of them masked, element by element."""

import rushlight as torch

__all__ = ["BINARY_NAMES", "INPLACE_BINARY_NAMES", "NATIVE_BINARY_FNS", "NATIVE_INPLACE_BINARY_FNS"]

BINARY_NAMES = """
    add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide
    floor_divide fmod logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide
    eq ne le ge greater greater_equal gt less_equal lt less maximum minimum fmax fmin not_equal
""".split()

NATIVE_BINARY_FNS = [getattr(torch.ops.aten, name) for name in BINARY_NAMES]
INPLACE_BINARY_NAMES = [name + "_" for name in BINARY_NAMES if hasattr(torch.ops.aten, name + "_")]
NATIVE_INPLACE_BINARY_FNS = [getattr(torch.ops.aten, name) for name in INPLACE_BINARY_NAMES]
