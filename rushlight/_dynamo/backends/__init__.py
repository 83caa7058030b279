"""Back ends of `torch.compile`: the registry of names, and what helps to write one."""

from .registry import (
    get_default_backend,
    list_backends,
    lookup_backend,
    register_backend,
    set_default_backend,
)

__all__ = [
    "get_default_backend",
    "list_backends",
    "lookup_backend",
    "register_backend",
    "set_default_backend",
]
