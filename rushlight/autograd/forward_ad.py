"""Forward-mode differentiation: tensors that carry tangents inside a dual level."""

from typing import NamedTuple

import rushlight
from rushlight import _C
from rushlight.autograd.grad_mode import _DecoratorContextManager

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_current_level = -1


def enter_dual_level():
    """Begin a dual level; tangents live as long as it does."""
    global _current_level
    level = _current_level + 1
    _C._enter_dual_level()
    _current_level = level
    return level


def exit_dual_level(*, level=None):
    """End the dual level."""
    global _current_level
    if level is None:
        level = _current_level
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not "
            "supported."
        )
    _C._exit_dual_level()
    _current_level = level - 1


def make_dual(tensor, tangent, *, level=None):
    """A tensor of the values of ``tensor`` that carries ``tangent``; what is computed from it does too."""
    if level is None:
        level = _current_level
    if level < 0 and _C._dual_level_depth() == 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    return _C._make_dual(tensor, tangent)


class UnpackedDualTensor(NamedTuple):
    """The value of a dual tensor and its tangent, None if it has none."""

    primal: rushlight.Tensor
    tangent: rushlight.Tensor | None


def unpack_dual(tensor, *, level=None):
    """The value and the tangent of a tensor."""
    if level is None:
        level = _current_level
    if level < 0 and _C._dual_level_depth() == 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_C._unpack_dual(tensor))


class dual_level(_DecoratorContextManager):
    """The extent of a dual level, as a context manager."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, exc_type, exc_value, traceback):
        exit_dual_level()


_is_fwd_grad_enabled = _C._is_fwd_grad_enabled


class _set_fwd_grad_enabled(_DecoratorContextManager):
    """Whether tangents are computed, as a context manager that takes effect at once."""

    def __init__(self, mode):
        self.prev = _is_fwd_grad_enabled()
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_fwd_grad_enabled(self.prev)
