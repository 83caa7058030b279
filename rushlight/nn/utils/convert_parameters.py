"""All parameters as one vector, and back."""

import rushlight as torch

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _same_device(param, device):
    if device is not None and param.device != device:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported. "
            f"Got {device} and {param.device}."
        )
    return param.device


def parameters_to_vector(parameters):
    """The parameters flattened, one behind the other."""
    device = None
    flat = []
    for param in parameters:
        device = _same_device(param, device)
        flat.append(param.view(-1))
    return torch.cat(flat)


def vector_to_parameters(vec, parameters):
    """Make the parameters views of the parts of vec."""
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__module__}.{type(vec).__qualname__}")
    device = None
    start = 0
    for param in parameters:
        device = _same_device(param, device)
        stop = start + param.numel()
        param.data = vec[start:stop].view_as(param).data
        start = stop
