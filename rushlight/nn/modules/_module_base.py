"""The two hot paths of every module: calling it, and looking up what it registered."""

from rushlight import _C
from rushlight._errors.advice import add_notes, attach

from ._hooks import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)


def _note_module_path(module, error):
    """Keep on error a note that says which module it left first; each caller above adds its child's name."""
    add_notes(error)
    trail = getattr(error, "_module_trail", None)
    last = None
    if trail is None:
        path, cls = "", type(module).__name__
    else:
        inner, path, cls, last = trail
        name = next((n for n, m in module.named_modules() if id(m) == inner), "")
        path = f"{name}.{path}" if name and path else name or path
    note = f"in module {path} ({cls})" if path else f"in module {cls}"
    attach(error, note, instead=last)
    error._module_trail = (id(module), path, cls, note)


# The C base goes straight to forward() when none of these holds a hook, and to _call_impl() otherwise.
_C._set_module_hooks(
    (_global_forward_hooks, _global_forward_pre_hooks, _global_backward_hooks, _global_backward_pre_hooks),
    _note_module_path,
)
ModuleBase = _C._ModuleBase


class CallSignature:
    """What `inspect.signature` says of a module, whose `__call__` is C; overrides speak for themselves."""

    def __get__(self, instance, owner=None):
        if instance is None or owner.__call__ is not ModuleBase.__call__:
            raise AttributeError("__signature__")
        import inspect

        return inspect.signature(lambda *args, **kwargs: None)
