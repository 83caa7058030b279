"""The function transforms behind ``torch.func`` and ``torch.vmap``."""


def __getattr__(name):
    if name == "config":
        from importlib import import_module

        return import_module("rushlight._functorch.config")
    raise AttributeError(f"module 'torch._functorch' has no attribute {name!r}")
