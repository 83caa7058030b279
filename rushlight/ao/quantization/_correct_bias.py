"""The name under which PyTorch has the correction of biases, which stands above both packages it compares."""

from importlib import import_module

_NAMES = ["MeanShadowLogger", "bias_correction", "get_module", "get_param", "parent_child_names"]


def __getattr__(name):
    if name in _NAMES:
        return getattr(import_module("rushlight.ao.ns._bias_correction"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
