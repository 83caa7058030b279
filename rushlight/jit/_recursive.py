"""What packages ask of PyTorch's module of this name: modules of handles, and scripting below `script`."""

from __future__ import annotations

from rushlight.jit._handle import wrap_cpp_module

__all__ = ["create_script_module", "wrap_cpp_module"]


def create_script_module(nn_module, stubs_fn=None, share_types=True, is_tracing=False):
    """`script` of a module. Each call compiles afresh, so no types are shared with other calls."""
    from rushlight.jit import script

    return script(nn_module)
