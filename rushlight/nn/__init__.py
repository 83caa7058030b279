"""Neural networks: modules, parameters, functions, initialization."""

# isort: off
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter

# isort: on
from . import functional as functional
from . import grad as grad
from . import init as init
from .modules import *
from .modules import Module as Module

__package_capture__ = "through"  # Note [Capture marks]

functional.grad = grad  # type: ignore[attr-defined]  # a __getattr__ there would cost every look-up
_LAZY = (
    "_reduction",
    "attention",
    "common_types",
    "intrinsic",
    "parallel",
    "qat",
    "quantizable",
    "quantized",
    "utils",
)


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.nn import attention as attention
    from rushlight.nn import common_types as common_types
    from rushlight.nn import intrinsic as intrinsic
    from rushlight.nn import parallel as parallel
    from rushlight.nn import qat as qat
    from rushlight.nn import quantizable as quantizable
    from rushlight.nn import quantized as quantized
    from rushlight.nn import utils as utils
    from rushlight.nn.parallel import DataParallel as DataParallel


def __getattr__(name):
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name == "DataParallel":
        from .parallel import DataParallel

        return DataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def factory_kwargs(kwargs):
    """The arguments device, dtype and memory_format, given by name or in a dictionary `factory_kwargs`.

    Args:
        kwargs (dict or None): what a module was given.

    Raises: TypeError where one is given twice, or there are others.

    Example:
        >>> torch.nn.factory_kwargs({"dtype": torch.float64})
        {'dtype': torch.float64}
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    expected = simple | {"factory_kwargs"}
    if not kwargs.keys() <= expected:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected}")
    chosen = dict(kwargs.get("factory_kwargs", {}))
    for name in simple & kwargs.keys():
        if name in chosen:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        chosen[name] = kwargs[name]
    return chosen
