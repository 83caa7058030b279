"""``copy.deepcopy`` of tensors: shared memory is copied once, and what classes add comes along."""

from copy import deepcopy

import rushlight
from rushlight._errors.advice import advised
from rushlight._utils import _is_data_less_wrapper, _quantized_on, _quantizer_parts, _slot_values

__all__ = ["deep_copy"]

__capture__ = "through"  # Note [Capture marks]


def deep_copy(tensor, memo):
    """A copy of a leaf with its class, attributes and gradient."""
    if not tensor.is_leaf:
        raise advised(
            RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment. If you were attempting to deepcopy a module, this may be "
                "because of a torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001"
            )
        )
    if id(tensor) in memo:
        return memo[id(tensor)]
    with rushlight.no_grad():
        new = _copy_of_data(tensor, memo)
        if type(tensor) is not type(new):
            new = new.as_subclass(type(tensor))
    # First what the class added: its __torch_function__ may look at that.
    for name, value in _slot_values(tensor).items():
        setattr(new, name, deepcopy(value, memo))
    new.__dict__.update(deepcopy(tensor.__dict__, memo))
    if tensor.requires_grad:
        new.requires_grad_()
    if tensor.grad is not None:
        new.grad = tensor.grad.__deepcopy__(memo)
    memo[id(tensor)] = new
    return new


def _copy_of_data(tensor, memo):
    if _is_data_less_wrapper(tensor):
        return _clone_of_wrapper(tensor)
    if tensor.layout != rushlight.strided or tensor.is_conj() or tensor.is_neg():
        return tensor.detach().clone()
    if tensor.is_meta:
        return rushlight.empty_strided(
            tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device
        )
    storage = tensor.untyped_storage().__deepcopy__(memo)
    layout = tensor.storage_offset(), tensor.size(), tensor.stride()
    if tensor.is_quantized:
        return _quantized_on(storage, tensor.dtype, *layout, _quantizer_parts(tensor))
    return rushlight.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage, *layout)


def _clone_of_wrapper(tensor):
    new = tensor.clone()
    if type(new) is not type(tensor):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass "
            "types that properly implement clone() and for which cloning returns another instance of the "
            f"same subclass: got {type(new).__name__} for {type(tensor).__name__}"
        )
    return new
