"""Helpers around modules: gradient clipping, packed sequences, parametrizations, fusion."""

from rushlight._command.submodules import submodule as _submodule

# Modules of the functions' own names, which would hide them if they came later.
from .spectral_norm import remove_spectral_norm as remove_spectral_norm
from .spectral_norm import spectral_norm as spectral_norm
from .weight_norm import remove_weight_norm as remove_weight_norm
from .weight_norm import weight_norm as weight_norm

_LAZY_MODULES = (
    "clip_grad", "convert_parameters", "fusion", "init", "memory_format", "parametrizations", "parametrize",
    "prune", "rnn", "stateless",
)  # fmt: skip
_LAZY_NAMES = {
    "clip_grad_norm": "clip_grad",
    "clip_grad_norm_": "clip_grad",
    "clip_grads_with_norm_": "clip_grad",
    "clip_grad_value_": "clip_grad",
    "get_total_norm": "clip_grad",
    "parameters_to_vector": "convert_parameters",
    "vector_to_parameters": "convert_parameters",
    "skip_init": "init",
    "fuse_conv_bn_eval": "fusion",
    "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion",
    "convert_conv2d_weight_memory_format": "memory_format",
    "convert_conv3d_weight_memory_format": "memory_format",
}

__all__ = [
    *_LAZY_NAMES, "remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm",
    "parametrizations", "parametrize", "rnn", "stateless",
]  # fmt: skip


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.nn.utils import clip_grad as clip_grad
    from rushlight.nn.utils import convert_parameters as convert_parameters
    from rushlight.nn.utils import fusion as fusion
    from rushlight.nn.utils import init as init
    from rushlight.nn.utils import memory_format as memory_format
    from rushlight.nn.utils import parametrizations as parametrizations
    from rushlight.nn.utils import parametrize as parametrize
    from rushlight.nn.utils import prune as prune
    from rushlight.nn.utils import rnn as rnn
    from rushlight.nn.utils import stateless as stateless
    from rushlight.nn.utils.clip_grad import clip_grad_norm as clip_grad_norm
    from rushlight.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
    from rushlight.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
    from rushlight.nn.utils.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
    from rushlight.nn.utils.clip_grad import get_total_norm as get_total_norm
    from rushlight.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
    from rushlight.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters
    from rushlight.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
    from rushlight.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
    from rushlight.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
    from rushlight.nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
    from rushlight.nn.utils.init import skip_init as skip_init
    from rushlight.nn.utils.memory_format import (
        convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format,
    )
    from rushlight.nn.utils.memory_format import (
        convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format,
    )


def __getattr__(name):
    import importlib

    if name in _LAZY_MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY_NAMES:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
        globals()[name] = value
        return value
    return _submodule(__name__, name)
