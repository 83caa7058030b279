"""Lists of tensors for `_foreach_` operators: which devices run them, and their parts of one dtype."""

import rushlight as torch

_foreach_supported_types = [torch.Tensor]


def _get_foreach_kernels_supported_devices():
    """The devices on which an optimizer prefers `_foreach_` operators to a loop."""
    return ["cuda", "xpu", "mtia", torch._C._get_privateuse1_backend_name()]


def _get_fused_kernels_supported_devices():
    """The devices on which an optimizer's whole step is one operator."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", torch._C._get_privateuse1_backend_name()]


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """Split parallel lists by the device and dtype of the first list's tensors.

    Gives ``{(device, dtype): (lists, indices)}``; indices stay empty unless asked for. An entry of a later
    list that is None, or a list that is empty, goes with its neighbours.
    """
    first, *rest = tensorlistlist
    for other in rest:
        if other and len(other) != len(first):
            raise RuntimeError("Tensorlists must have the same length as the first one, or be empty")
    groups = {}
    for i, tensor in enumerate(first):
        key = (tensor.device, tensor.dtype)
        if key not in groups:
            groups[key] = ([[] for _ in tensorlistlist], [])
        lists, indices = groups[key]
        for taken, given in zip(lists, tensorlistlist):
            if given:
                taken.append(given[i])
        if with_indices:
            indices.append(i)
    return groups


def _device_has_foreach_support(device):
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors, device):
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in _foreach_supported_types for t in tensors
    )
