"""The two hot paths of every module: calling it, and looking up what it registered."""

from rushlight import _C

from ._hooks import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)


def _note_module_path(module, error):
    """Keep on error a note that says which module it left first; each caller above adds its child's name."""
    trail = getattr(error, "_module_trail", None)
    notes = error.__dict__.setdefault("__notes__", [])
    if trail is None:
        path, cls = "", type(module).__name__
    else:
        inner, path, cls, last = trail
        name = next((n for n, m in module.named_modules() if id(m) == inner), "")
        path = f"{name}.{path}" if name and path else name or path
        if last in notes:
            notes.remove(last)
    note = f"in module {path} ({cls})" if path else f"in module {cls}"
    notes.append(note)
    error._module_trail = (id(module), path, cls, note)


class _PythonModuleBase:
    """What `_C._ModuleBase` does in C, where the core has it."""

    _compiled_call_impl = None

    def __call__(self, *args, **kwargs):
        try:
            if self._compiled_call_impl is not None:
                return self._compiled_call_impl(*args, **kwargs)
            own = self.__dict__
            if (
                own["_forward_hooks"]
                or own["_forward_pre_hooks"]
                or own["_backward_hooks"]
                or own["_backward_pre_hooks"]
                or _global_forward_hooks
                or _global_forward_pre_hooks
                or _global_backward_hooks
                or _global_backward_pre_hooks
            ):
                return self._call_impl(*args, **kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            _note_module_path(self, error)
            raise

    _wrapped_call_impl = __call__

    def __getattr__(self, name):
        own = self.__dict__
        if "_parameters" in own:
            table = own["_parameters"]
            if name in table:
                return table[name]
        if "_buffers" in own:
            table = own["_buffers"]
            if name in table:
                return table[name]
        if "_modules" in own:
            table = own["_modules"]
            if name in table:
                return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


ModuleBase = getattr(_C, "_ModuleBase", _PythonModuleBase)
