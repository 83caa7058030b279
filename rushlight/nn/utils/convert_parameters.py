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
    """The parameters flattened, one behind the other.

    Args:
        parameters (iterable of Tensor): on one device.

    Returns: a tensor (n).

    Raises: TypeError where they lie on several devices.

    Example:
        >>> torch.nn.utils.parameters_to_vector([torch.ones(2, 1), torch.zeros(1)])
        tensor([1., 1., 0.])
    """
    device = None
    flat = []
    for param in parameters:
        device = _same_device(param, device)
        flat.append(param.view(-1))
    return torch.cat(flat)


def vector_to_parameters(vec, parameters):
    """Makes the parameters views of the parts of a vector.

    Args:
        vec (Tensor): (n).
        parameters (iterable of Tensor): whose data is replaced.

    Raises: TypeError where vec is no tensor, or they lie on several devices.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0]), [w])
        >>> w.data
        tensor([1., 2.])
    """
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__module__}.{type(vec).__qualname__}")
    device = None
    start = 0
    for param in parameters:
        device = _same_device(param, device)
        stop = start + param.numel()
        param.data = vec[start:stop].view_as(param).data
        start = stop
