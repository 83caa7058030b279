"""Back ends: functions that get a GraphModule and example inputs, and return a function of tensors."""

from typing import Any

from rushlight._dynamo.exc import InvalidBackend

__all__ = [
    "get_default_backend",
    "list_backends",
    "lookup_backend",
    "register_backend",
    "set_default_backend",
]

_backends: dict = {}
_default: Any = "inductor"
_DEBUG = {"eager", "aot_eager"}


def register_backend(compiler_fn=None, name=None, tags=()):
    """Make a back end known by its name; used with or without arguments."""
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name, tags)
    _backends[name or compiler_fn.__name__] = compiler_fn
    compiler_fn._tags = tuple(tags)
    return compiler_fn


def set_default_backend(backend):
    """The back end of `torch.compile` without `backend`; None brings "inductor" back."""
    global _default
    if isinstance(backend, str):
        lookup_backend(backend)
    _default = "inductor" if backend is None else backend


def get_default_backend():
    """The back end of `torch.compile` without `backend`: a name or a function."""
    return _default


def lookup_backend(backend):
    """A back end by name, or as it is."""
    if not isinstance(backend, str):
        return backend
    if backend not in _backends:
        raise InvalidBackend(
            f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends."
        )
    return _backends[backend]


def list_backends(exclude_tags=("debug", "experimental")):
    """Names of back ends, but for those with such a tag."""
    excluded = set(exclude_tags or ())
    return sorted(name for name, backend in _backends.items() if not excluded & set(backend._tags))


@register_backend(tags=("debug",))
def eager(module, example_inputs):
    """Runs the graph node by node."""
    return module.forward


@register_backend(tags=("debug",))
def aot_eager(module, example_inputs):
    """The same: graphs hold operators below autograd anyhow."""
    return module.forward


@register_backend
def inductor(module, example_inputs, **options):
    """The default: see `rushlight._inductor`."""
    from rushlight._inductor import compile_fx

    return compile_fx(module, example_inputs, **options)


inductor.opts_out = True  # type: ignore[attr-defined]
