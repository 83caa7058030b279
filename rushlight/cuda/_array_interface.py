"""The array interface of Numba, version 2: for libraries that read CUDA memory."""

import rushlight

__all__ = ["array_interface"]


def array_interface(tensor):
    """What `__cuda_array_interface__` gives: a dense CUDA tensor's type, shape, strides and address."""
    if not tensor.is_cuda:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {tensor.type()} "
            "If CUDA data is required use tensor.cuda() to copy tensor to device memory."
        )
    if tensor.is_sparse:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on sparse type: {tensor.type()} "
            "Use Tensor.to_dense() to convert to a dense tensor first."
        )
    if tensor.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. "
            "If gradients aren't required, use var.detach() to get Variable that doesn't require grad."
        )
    size = tensor.element_size()
    return {
        "typestr": f"{'|' if size == 1 else '<'}{_kind(tensor)}{size}",
        "shape": tuple(tensor.shape),
        "strides": None if tensor.is_contiguous() else tuple(s * size for s in tensor.stride()),
        "data": (tensor.data_ptr() if tensor.numel() else 0, False),
        "version": 2,
    }


def _kind(tensor):
    """The letter of a type string for the elements."""
    if tensor.dtype == rushlight.bfloat16:
        return "V"  # no type string names it
    if tensor.dtype == rushlight.bool:
        return "b"
    if tensor.dtype.is_floating_point or tensor.is_complex():
        return "c" if tensor.is_complex() else "f"
    return "i" if tensor.dtype.is_signed else "u"
