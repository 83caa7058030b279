"""Limiting gradients by norm or by value."""

import types
import warnings

import rushlight as torch
from rushlight._errors.advice import advised

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _listed(tensors):
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _grads(parameters):
    return [p.grad for p in parameters if p.grad is not None]


def _fit_foreach(tensors):
    """Whether one call can take them all: tensors of one kind, in dense memory."""
    first = tensors[0]
    kind, device, dtype = type(first), first.device, first.dtype
    return (kind is torch.Tensor or kind is torch.nn.Parameter) and all(
        type(t) is kind and t.device == device and t.dtype == dtype and t.layout is torch.strided
        for t in tensors
    )


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors together, as if they were one vector.

    Args:
        tensors (iterable of Tensor or Tensor): mostly gradients.
        norm_type (float): p of the norm; inf is the largest element.
        error_if_nonfinite (bool): whether a norm that is NaN or infinite is an error.
        foreach (bool, optional): whether operators on lists are used.

    Returns: a tensor ().

    Raises: RuntimeError where the norm is not finite and `error_if_nonfinite`.

    Example:
        >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        tensor(5.)
    """
    with torch.no_grad():
        tensors = _listed(tensors)
        norm_type = float(norm_type)
        if not tensors:
            return torch.tensor(0.0)
        if foreach is not False and _fit_foreach(tensors):
            norms = torch._foreach_norm(tensors, norm_type)
        else:
            device = tensors[0].device
            norms = tuple(torch.linalg.vector_norm(t, norm_type).to(device) for t in tensors)
        total = torch.linalg.vector_norm(torch.stack(norms), norm_type)
        if error_if_nonfinite and not bool(torch.isfinite(total)):
            raise advised(
                RuntimeError(
                    f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
                    "so it cannot be clipped. To disable this error and scale the gradients by the "
                    "non-finite norm anyway, set `error_if_nonfinite=False`"
                )
            )
        return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales gradients, in place, by max_norm / total_norm where that is below 1.

    Args:
        parameters (iterable of Tensor or Tensor): whose gradients they are.
        max_norm (float): the bound.
        total_norm (Tensor): their norm, as `get_total_norm` gives it.
        foreach (bool, optional): whether operators on lists are used.

    Example:
        >>> w = torch.nn.Parameter(torch.ones(2))
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> norm = torch.nn.utils.get_total_norm([w.grad])
        >>> torch.nn.utils.clip_grads_with_norm_([w], 10.0, norm)
        >>> w.grad
        tensor([3., 4.])
    """
    with torch.no_grad():
        grads = _grads(_listed(parameters))
        # Always multiplied, because asking whether it is needed would wait for the device.
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        if foreach is not False and grads and _fit_foreach(grads) and grads[0].device == factor.device:
            torch._foreach_mul_(grads, factor)
            return
        for grad in grads:
            grad.mul_(factor.to(grad.device))


def clip_grad_norm_(
    parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: "bool | None" = None,
):
    """Scales gradients, in place, so that their joint norm is at most `max_norm`.

    Args:
        parameters (iterable of Tensor or Tensor): whose gradients they are.
        max_norm (float): the bound.
        norm_type (float): p of the norm; inf is the largest element.
        error_if_nonfinite (bool): whether a norm that is NaN or infinite is an error.
        foreach (bool, optional): whether operators on lists are used.

    Returns: the norm before, a tensor ().

    Formula: g *= min(1, max_norm / (norm + 1e-6))

    Raises: RuntimeError where the norm is not finite and `error_if_nonfinite`.

    Example:
        >>> w = torch.nn.Parameter(torch.ones(2))
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> torch.nn.utils.clip_grad_norm_([w], max_norm=1.0), w.grad
        (tensor(5.), tensor([0.6000, 0.8000]))
    """
    given, parameters = parameters, _listed(parameters)
    if not parameters and isinstance(given, types.GeneratorType):
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total_norm = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Cuts every gradient, in place, to [-clip_value, clip_value].

    Args:
        parameters (iterable of Tensor or Tensor): whose gradients they are.
        clip_value (float): the bound.
        foreach (bool, optional): whether operators on lists are used.

    Example:
        >>> w = torch.nn.Parameter(torch.ones(2))
        >>> w.grad = torch.tensor([0.5, -4.0])
        >>> torch.nn.utils.clip_grad_value_([w], 1.0)
        >>> w.grad
        tensor([ 0.5000, -1.0000])
    """
    clip_value = float(clip_value)
    with torch.no_grad():
        for grad in _grads(_listed(parameters)):
            grad.clamp_(min=-clip_value, max=clip_value)
