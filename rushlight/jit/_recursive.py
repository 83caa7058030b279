"""What packages ask of PyTorch's module of this name: modules of handles, and scripting below `script`."""

from __future__ import annotations

import inspect

from rushlight.jit._handle import wrap_cpp_module

__all__ = ["create_script_module", "infer_methods_to_compile", "wrap_cpp_module"]


def infer_methods_to_compile(nn_module):
    """The names of the methods that `script` begins with: `forward`, and those marked with `export`."""
    names = [n for n in dir(type(nn_module)) if n == "forward" or _is_exported(type(nn_module), n)]
    return sorted(names, key=lambda name: name != "forward")


def _is_exported(cls, name):
    return getattr(inspect.getattr_static(cls, name), "_torchscript_modifier", None) == "export"


def create_script_module(nn_module, stubs_fn=None, share_types=True, is_tracing=False):
    """`script` of a module; without ``share_types`` no other module has its type or that of its parts."""
    from rushlight.jit import script

    made = script(nn_module)
    for module in () if share_types else made.modules():
        cls = type(module)
        module.__class__ = type(cls.__name__, (cls,), {"__module__": cls.__module__, "_own_type": object()})
    return made
