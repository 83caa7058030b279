"""Where parts of `torch.library` were before."""

__all__ = ["impl"]


def __getattr__(name):
    if name == "impl":
        from importlib import import_module

        return import_module("rushlight._custom_op.impl")
    raise AttributeError(f"module 'torch._custom_op' has no attribute {name!r}")
