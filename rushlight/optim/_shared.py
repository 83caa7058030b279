"""What PyTorch's optimizers share under private names, which optimizers of other packages import."""

from collections.abc import Iterable
from functools import wraps

import rushlight as torch
from rushlight.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias
else:
    Any = object  # the module typing is slow to load

ParamsT: "TypeAlias" = Iterable[torch.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, torch.Tensor]]
StateDict: "TypeAlias" = dict[str, Any]

_params_doc = """params (iterable): iterable of parameters or named_parameters to optimize
            or iterable of dicts defining parameter groups. When using named_parameters,
            all parameters in all groups should be named"""
_foreach_doc = """foreach (bool, optional): whether to update all parameters with operators on lists
            instead of one after the other (default: None)"""
_fused_doc = """fused (bool, optional): whether to update all parameters with one operator
            (default: None)"""
_capturable_doc = """capturable (bool, optional): whether the step may be captured in a CUDA graph
            (default: False)"""
_differentiable_doc = """differentiable (bool, optional): whether autograd records the step
            (default: False)"""
_maximize_doc = """maximize (bool, optional): maximize the objective with respect to the
            params, instead of minimizing (default: False)"""


def _foreach_types():
    return (torch.Tensor, torch.nn.Parameter)


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """Whether an optimizer of these parameters should take its fused and its foreach form by default."""
    if differentiable:
        return False, False

    def all_on(devices, floating):
        return all(
            p is None
            or (
                type(p) in _foreach_types()
                and p.device.type in devices
                and (not floating or torch.is_floating_point(p))
            )
            for p in params
        )

    fused = use_fused and all_on(_get_fused_kernels_supported_devices(), floating=True)
    return fused, not fused and all_on(_get_foreach_kernels_supported_devices(), floating=False)


def _device_dtype_check_for_fused(p, cuda_unsupported=False):
    supported = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        supported.remove("cuda")
    if not (p.device.type in supported and torch.is_floating_point(p)):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
            f"{supported} but {p.dtype} and {p.device.type}"
        )


def _get_capturable_supported_devices(supports_xla=True):
    """The devices whose steps a graph may capture."""
    devices = ["cuda", "xpu", "hpu", torch._C._get_privateuse1_backend_name()]
    return [*devices, "xla"] if supports_xla else devices


def _check_capturable(params, what, supports_xla):
    """Only steps on an accelerator can be captured in a graph."""
    devices = _get_capturable_supported_devices(supports_xla)
    if any(p.grad is not None and p.device.type not in devices for p in params):
        raise AssertionError(f"If capturable=True, {what} must be on supported devices: {devices}.")


def _get_value(x):
    """A number, also where a tensor holds it."""
    return x.item() if isinstance(x, torch.Tensor) else x


def _to_scalar(x):
    """A tensor of one element without its dimensions; everything else as it is."""
    return x.squeeze() if isinstance(x, torch.Tensor) and x.dim() != 0 else x


def _stack_if_compiling(x):
    """The list itself: nothing is compiled here."""
    return x


def _get_scalar_dtype(is_fused=None):
    """The dtype of step counters."""
    if is_fused:
        return torch.float32
    return torch.float64 if torch.get_default_dtype() == torch.float64 else torch.float32


def _view_as_real(params, *state_and_grads):
    """Replace complex parameters, and what belongs to them, by views of pairs of numbers."""
    for i, p in enumerate(params):
        if torch.is_complex(p):
            for values in (params, *state_and_grads):
                values[i] = torch.view_as_real(values[i])


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """A decorator for the functional form of an optimizer."""

    def decorate(func):
        @wraps(func)
        def call(*args, **kwargs):
            return func(*args, **kwargs)

        return call

    return decorate


def group_tensors(tensorlistlist, with_indices=False):
    """`Optimizer._group_tensors_by_device_and_dtype`."""
    return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)
