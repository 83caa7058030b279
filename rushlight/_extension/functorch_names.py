"""Names of `torch._C._functorch` that are plain Python."""

import enum
import threading

from rushlight._C import _functorch


class TransformType(enum.Enum):
    """The kinds of function transforms."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


class _Settings(threading.local):
    single_level = False


_settings = _Settings()


def get_single_level_autograd_function_allowed():
    """Whether `_SingleLevelFunction.apply` may record at one level of the active transforms."""
    return _settings.single_level


def set_single_level_autograd_function_allowed(allowed):
    _settings.single_level = bool(allowed)


def dlevel(tensor):
    """The level that a tensor belongs to: 0 for none, -1 if that level has ended."""
    if not _functorch.is_functorch_wrapped_tensor(tensor):
        return 0
    return max(_functorch.maybe_get_level(tensor), -1)  # whose -2 is that of PyTorch's function of the name
