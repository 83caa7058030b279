"""The module that a compiler would return. `torch.compile` gives modules back as they are, so there is none;
programs ask ``isinstance`` and look for ``_orig_mod``."""

from rushlight.nn import Module

__all__ = ["OptimizedModule", "is_dynamo_supported", "is_inductor_supported"]


class OptimizedModule(Module):
    """A module around another one that is run in its place."""

    def __init__(self, mod, dynamo_ctx=None):
        super().__init__()
        self._orig_mod = mod
        self.dynamo_ctx = dynamo_ctx

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)


def is_dynamo_supported():
    return False


def is_inductor_supported():
    return False
