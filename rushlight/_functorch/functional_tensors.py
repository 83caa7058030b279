"""PyTorch's names for programs without mutation: functional tensors, and the mode that makes them.

A functional tensor is what a program holds within `FunctionalizeMode`: a tensor to write to, which has a
value that is never written to. It is of no class of its own, so that fake tensors stay fake ones:
`FunctionalTensor` tells by a mark whether a mode keeps a tensor's value.
"""

import contextlib
import threading

import rushlight as torch
from rushlight._functorch.functionalization import FunctionalizeMode, _modes_off, _recording_off
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import _all_modes

__all__ = [
    "BaseFunctionalizeAPI",
    "CppFunctionalizeAPI",
    "FunctionalTensor",
    "FunctionalTensorMode",
    "FunctorchFunctionalizeAPI",
    "PythonFunctionalizeAPI",
    "disable_functional_mode",
    "dispatch_functionalize",
    "mb_unwrap_functional_tensor",
]


def _mode_of(tensor):
    return getattr(tensor, "_functional_mode", None)


def _marked(mode, tree):
    def mark(tensor):
        tensor._functional_mode = mode
        if not hasattr(tensor, "elem"):  # a wrapper's own
            tensor.elem = tensor
        return tensor

    return pytree.tree_map_only(torch.Tensor, mark, tree)


def _made_functional(mode, tensor, requires_grad=None):
    """A tensor to write to, whose value is the one given."""
    if _mode_of(tensor) is mode:
        return tensor
    with _recording_off(), torch.no_grad():
        outer = tensor.detach().clone()
    outer.requires_grad_(tensor.requires_grad if requires_grad is None else requires_grad)
    member = mode._member(outer)
    member.group.value = tensor
    member.writes = -1
    return _marked(mode, outer)


def _current_mode():
    found = [mode for mode in _all_modes() if isinstance(mode, FunctionalTensorMode)]
    if not found:
        raise RuntimeError("FunctionalTensor.to_functional: there is no FunctionalTensorMode around it")
    return found[-1]


class FunctionalTensorMode(FunctionalizeMode):
    """Within it, operators reach the modes outside without mutation: see `FunctionalTensor.to_functional`.

    Args:
        pre_dispatch: whether it sees operators as the program calls them.
        export: kept for PyTorch's callers.
    """

    rules_of = FunctionalizeMode  # of operators that take functions

    def __init__(self, pre_dispatch=False, export=False, _allow_token_discovery=False, _reapply_views=True):
        super().__init__(copies=not _reapply_views, pre_dispatch=pre_dispatch)
        self.pre_dispatch, self.export = pre_dispatch, export
        self._allow_token_discovery, self._tokens = _allow_token_discovery, {}

    @classmethod
    def is_infra_mode(cls):
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _marked(self, super().__torch_dispatch__(func, types, args, kwargs))


class _HasValue(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, torch.Tensor) and _mode_of(instance) is not None


class FunctionalTensor(metaclass=_HasValue):
    """What `isinstance` tells of tensors that a `FunctionalTensorMode` made.

    `elem` is the functional tensor of `torch._is_functional_tensor` and its like: the tensor itself.
    """

    def __new__(cls, elem, mode):
        return _made_functional(mode, elem)

    @staticmethod
    def to_functional(x):
        """A functional tensor with this value, within a `FunctionalTensorMode`."""
        return _made_functional(_current_mode(), x)


def mb_unwrap_functional_tensor(tensor):
    """The value of a functional tensor, any other tensor itself."""
    return tensor if _mode_of(tensor) is None else _from_functional_tensor(tensor)


# --- torch._to_functional_tensor and its like

_threads = threading.local()


def _mode_to_be():
    """The mode that `_enable_functionalization` starts, or has started, on this thread."""
    if getattr(_threads, "mode", None) is None:
        _threads.mode, _threads.entered = FunctionalTensorMode(), False
    return _threads.mode


def _to_functional_tensor(t, *, mirror_autograd_meta=False):
    """A tensor to write to, whose value is `t`."""
    return _made_functional(_mode_to_be(), t, mirror_autograd_meta and t.requires_grad)


def _is_functional_tensor(t):
    """Whether a mode keeps a value for the tensor."""
    return _mode_of(t) is not None


def _from_functional_tensor(t):
    """The value of a functional tensor."""
    mode = _mode_of(t)
    if mode is None:
        raise RuntimeError("torch._from_functional_tensor: the tensor is no functional tensor")
    return mode._value(mode._member(t))


def _sync(t):
    """Values follow writes by themselves; an error for other tensors, as in PyTorch."""
    if _mode_of(t) is None:
        raise RuntimeError("torch._sync: the tensor is no functional tensor")


def _enable_functionalization(*, reapply_views=False):
    """Start a mode without mutation on this thread; without `reapply_views` views become copies, too."""
    mode = _mode_to_be()
    if _threads.entered:
        raise RuntimeError(
            "multiple layers of mode-style functionalization nesting is not currently supported"
        )
    mode.copies, _threads.entered = not reapply_views, True
    mode.__enter__()


def _disable_functionalization():
    """End what `_enable_functionalization` started."""
    if getattr(_threads, "mode", None) is not None and _threads.entered:
        _threads.mode.__exit__(None, None, None)
        _threads.mode = None


def _mirror_autograd_meta_to(source, target):
    """Let a tensor require gradients if another one does."""
    target.requires_grad_(source.requires_grad)


# --- what rules for operators that take functions use


@contextlib.contextmanager
def disable_functional_mode():
    """Within it no `FunctionalTensorMode` sees operators."""
    with _modes_off(FunctionalTensorMode):
        yield


def dispatch_functionalize(func, mode=None):
    """The function without mutation: of tensors, which it leaves as they are, and with tensors as results."""

    def pure(*args, **kwargs):
        inner = FunctionalTensorMode() if mode is None else mode
        api = PythonFunctionalizeAPI(inner)
        with disable_functional_mode():
            wrapped = pytree.tree_map_only(torch.Tensor, lambda t: _made_functional(inner, t), (args, kwargs))
            with inner:
                result = func(*wrapped[0], **wrapped[1])
            return api.unwrap_tensors(result)

    return pure


class BaseFunctionalizeAPI:
    """What a rule of `py_functionalize_impl` gets: how to reach values, and what lies outside of the mode."""

    def __init__(self, mode=None, pre_dispatch=False):
        self.mode = FunctionalTensorMode(pre_dispatch=pre_dispatch) if mode is None else mode
        self.pre_dispatch = pre_dispatch

    def wrap_tensors(self, args):
        """Tensors of the program with these values."""
        return _marked(self.mode, args)

    def unwrap_tensors(self, args, arg_name=None):
        """The values of tensors."""
        return self.mode.values(args)

    def functionalize(self, inner_f):
        """A function of the program as one of values."""
        return dispatch_functionalize(inner_f, type(self.mode)() if self.mode is not None else None)

    def redispatch_to_next(self):
        """Within it, operators reach what lies outside."""
        return disable_functional_mode()

    def replace(self, input_tensor, output_tensor):
        """Give a tensor a new value."""
        self.mode._write(self.mode._member(input_tensor), output_tensor)

    def commit_update(self, tensor):
        """What was replaced is seen by views at once."""

    def sync(self, tensor):
        """Values follow writes by themselves."""

    def mark_mutation_hidden_from_autograd(self, tensor):
        """Writes that autograd does not record are recorded by none of the modes."""


class PythonFunctionalizeAPI(BaseFunctionalizeAPI):
    """That of `FunctionalTensorMode`."""


class CppFunctionalizeAPI(BaseFunctionalizeAPI):
    """That of `_enable_functionalization`, which is the same mode."""

    def __init__(self):
        super().__init__(_mode_to_be())


class FunctorchFunctionalizeAPI(BaseFunctionalizeAPI):
    """That of `torch.func.functionalize`; `interpreter` is its mode."""

    def __init__(self, interpreter):
        super().__init__(interpreter)
