"""The package that PyTorch installs beside `torch`: the function transforms under their first names."""

import functools
import warnings

import _rushlight  # makes Rushlight importable

import rushlight
from rushlight import func
from rushlight._functorch import make_functional as _modules
from rushlight._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers
from rushlight.func import functional_call, stack_module_state
from rushlight.fx.experimental.proxy_tensor import make_fx

__version__ = rushlight.__version__


def _deprecated(function, successor=None):
    name = function.__name__
    successor = "torch.vmap" if name == "vmap" else f"torch.func.{successor or name}"
    text = (
        "We've integrated functorch into PyTorch. As the final step of the integration, "
        f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of "
        f"PyTorch >= 2.3. Please use `{successor}` instead; see the PyTorch 2.0 release "
        "notes and/or the `torch.func` migration guide for more details "
        "https://pytorch.org/docs/main/func.migrating.html"
    )

    @functools.wraps(function)
    def call(*args, **kwargs):
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    return call


functionalize = _deprecated(func.functionalize)
grad = _deprecated(func.grad)
grad_and_value = _deprecated(func.grad_and_value)
hessian = _deprecated(func.hessian)
jacfwd = _deprecated(func.jacfwd)
jacrev = _deprecated(func.jacrev)
jvp = _deprecated(func.jvp)
vjp = _deprecated(func.vjp)
vmap = _deprecated(func.vmap)
make_functional = _deprecated(_modules.make_functional, "functional_call")
make_functional_with_buffers = _deprecated(_modules.make_functional_with_buffers, "functional_call")
combine_state_for_ensemble = _deprecated(_modules.combine_state_for_ensemble, "stack_module_state")
