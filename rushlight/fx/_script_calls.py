"""Calls of scripted modules stay calls in a symbolic trace, with the choices by value that are in them."""

import functools

from rushlight.utils._pytree import tree_leaves

from .proxy import Proxy

__all__ = ["patch_scripts"]


def patch_scripts(patcher, tracer):
    """Let the methods of scripted modules below the tracer's root make a node when a proxy goes in."""
    for path, module in tracer.root.named_modules():
        methods = getattr(type(module), "_script_methods", None)
        if path and isinstance(methods, dict):
            for name in {"forward", *methods}:
                method = getattr(module, name, None)
                if callable(method):
                    call = functools.partial(_call, tracer, path, name, method)
                    patcher.patch_item(module.__dict__, name, call)


def _call(tracer, path, name, method, *args, **kwargs):
    if not any(isinstance(leaf, Proxy) for leaf in tree_leaves((args, kwargs))):
        return method(*args, **kwargs)
    owner = tracer.create_proxy("get_attr", path, (), {})
    return tracer.create_proxy("call_method", name, (owner, *args), kwargs)
