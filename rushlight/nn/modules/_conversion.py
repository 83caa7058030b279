"""What changes a whole tree of modules: devices and dtypes, modes, gradients."""

import warnings

import rushlight as torch
from rushlight import Tensor
from rushlight._C import _drop_gradients, _train_tree, _zero_gradients
from rushlight.nn.parameter import Parameter

from ._state_dict import future_switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Self

    from .module import Module


def _parse_to(device=None, dtype=None, non_blocking=False, *, tensor=None, copy=None, memory_format=None):
    """The forms (device, dtype), (dtype) and (tensor) of `to`, as (device, dtype, non_blocking, format)."""
    if copy is not None:
        raise RuntimeError(".to() does not accept copy argument")
    other = tensor if tensor is not None else device
    if isinstance(other, Tensor):
        return other.device, other.dtype, bool(dtype) or non_blocking, memory_format
    if isinstance(device, torch.dtype):
        device, dtype, non_blocking = None, device, bool(dtype) or non_blocking
    if device is not None and not isinstance(device, torch.device):
        device = torch.device(device)
    return device, dtype, non_blocking, memory_format


def _can_share_data(param, applied):
    """Whether param can take over the data of applied and stay the same object."""
    if future_switch("get_overwrite_module_params_on_conversion"):
        return False
    plain = type(applied) is Tensor or isinstance(applied, Parameter)
    return plain and param.is_meta == applied.is_meta and param.layout == applied.layout


def _holds_tensors(applied):
    """Whether a parameter takes over `applied` by swapping, for its class is made of several tensors."""
    if type(applied) in (Tensor, Parameter):
        return False
    from rushlight.utils._python_dispatch import is_traceable_wrapper_subclass

    return is_traceable_wrapper_subclass(applied)


class ConversionMixin:
    """Methods that visit a module and all below it."""

    if TYPE_CHECKING:  # what the module has that they are mixed into
        _parameters: dict[str, Any]
        _buffers: dict[str, Any]
        children: Any
        parameters: Any

    def apply(self, fn: "Callable[[Module], object]") -> "Self":
        """Call fn on every module of the tree, children first.

        Args:
            fn (callable): is called with each submodule, then with the module.

        Example:
            >>> seen = []
            >>> _ = torch.nn.Sequential(torch.nn.ReLU()).apply(lambda m: seen.append(type(m).__name__))
            >>> seen
            ['ReLU', 'Sequential']
        """
        for module in self.children():
            module.apply(fn)
        fn(self)  # type: ignore[arg-type]  # what is mixed into is a Module
        return self

    def _apply(self, fn, recurse=True) -> "Self":
        """Replace each parameter, gradient and buffer by fn of it; parameters stay the same objects."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        new_grad: Any
        swap = self._parameters and future_switch("get_swap_module_params_on_conversion")
        for name, param in self._parameters.items():
            if param is None:
                continue
            grad = param.grad
            with torch.no_grad():
                applied = fn(param)
                new_grad = None if grad is None else fn(grad)
            if applied is param and new_grad is grad and not swap:
                continue  # nothing to convert
            if swap or _holds_tensors(applied):
                self._swap_parameter(name, param, applied, grad, new_grad)
                continue
            if _can_share_data(param, applied):
                if grad is not None:
                    param.grad = None
                param.data = applied
            else:
                param = self._parameters[name] = Parameter(applied, param.requires_grad)
            if grad is None:
                continue
            if _can_share_data(grad, new_grad):
                grad.data, new_grad = new_grad, grad
            param.grad = new_grad.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _swap_parameter(self, name, param, applied, grad, new_grad):
        # A gradient holds its tensor, which hinders swapping.
        param.grad = None
        try:
            torch.utils.swap_tensors(param, Parameter(applied, param.requires_grad))
        except Exception as error:
            param.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from error
        if grad is None:
            return
        if new_grad is not grad:
            new_grad.requires_grad_(grad.requires_grad)
            try:
                torch.utils.swap_tensors(grad, new_grad)
            except Exception as error:
                raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}.grad") from error
        param.grad = grad

    def to(self, *args, **kwargs) -> "Self":
        """Move to a device, convert to a floating point dtype, or change the memory format; in place.

        Args:
            device, dtype, or a tensor: where and in which floating dtype parameters and buffers should be.
            non_blocking (bool): whether copies from page-locked memory may go on while the program does.
            memory_format: the order of four-dimensional parameters in memory.

        Example:
            >>> torch.nn.Linear(2, 2).to(torch.float64).weight.dtype
            torch.float64
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                    f"dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may change, and "
                    "some "
                    "modules might not work as expected when using complex tensors as parameters or buffers. "
                    "Please "
                    "file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
                    "if a complex module does not work as expected.",
                    stacklevel=2,
                )

        def convert(t):
            try:
                target = dtype if t.is_floating_point() or t.is_complex() else None
                if memory_format is not None and t.dim() in (4, 5):
                    return t.to(device, target, non_blocking, memory_format=memory_format)
                return t.to(device, target, non_blocking)
            except NotImplementedError as error:
                if str(error) != "Cannot copy out of meta tensor; no data!":
                    raise
                raise NotImplementedError(
                    f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when "
                    "moving module "
                    "from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True) -> "Self":
        """Move to device without copying: the memory is uninitialized."""
        return self._apply(lambda t: torch.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type) -> "Self":
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> "Self":
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> "Self":
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> "Self":
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> "Self":
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self) -> "Self":
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None) -> "Self":
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device=None) -> "Self":
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device=None) -> "Self":
        return self._apply(lambda t: t.mtia(device))

    def ipu(self, device=None) -> "Self":
        return self._apply(lambda t: t.ipu(device))

    def share_memory(self) -> "Self":
        return self._apply(lambda t: t.share_memory_())

    def train(self, mode: bool = True) -> "Self":
        """Set training mode (or with False, evaluation mode) in the whole tree.

        Args:
            mode (bool): True to train, False to evaluate.

        Example:
            >>> torch.nn.Dropout().train(False).training
            False
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        return _train_tree(self, mode)

    def eval(self) -> "Self":
        """eval.

        Example:
            >>> torch.nn.Dropout().eval().training
            False
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> "Self":
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or with set_to_none=False fill them with zeros."""
        if self.__dict__.get("_is_replica"):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The "
                "parameters are "
                "copied (in a differentiable manner) from the original module. This means they are not leaf "
                "nodes in "
                "autograd and so don't accumulate gradients. If you need gradients in your forward method, "
                "consider "
                "using autograd.grad instead.",
                stacklevel=2,
            )
        if set_to_none:
            _drop_gradients(list(self.parameters()))
            return
        for grad in _zero_gradients(list(self.parameters())):
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica
