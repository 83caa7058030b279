"""Saved tensors that may be changed: whoever writes to memory that backward needs makes a copy first."""

import weakref
from contextlib import contextmanager

import rushlight
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.utils._python_dispatch import TorchDispatchMode

__all__ = ["allow_mutation"]


class _Saved:
    """One saved tensor: the caller's own, until that is about to change."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor):
        self.tensor = tensor


class _Memory:
    """Which saved tensors lie in which storage, and not in a copy of their own yet."""

    def __init__(self):
        self.by_storage = {}
        self.open = True

    @staticmethod
    def _key(tensor):
        return tensor.untyped_storage()._cdata

    def save(self, tensor):
        saved = _Saved(tensor.detach())
        self.by_storage.setdefault(self._key(tensor), weakref.WeakSet()).add(saved)
        return saved

    def read(self, saved):
        if not self.open:
            raise RuntimeError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context")
        return saved.tensor

    def copy_what_lies_in(self, tensor):
        for saved in self.by_storage.pop(self._key(tensor), ()):
            saved.tensor = saved.tensor.clone()


class _CopyBeforeWrite(TorchDispatchMode):
    def __init__(self, memory):
        super().__init__()
        self.memory = memory

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for place, parameter in enumerate(func._schema.arguments):
            if not parameter.is_write:
                continue
            value = kwargs.get(parameter.name) if place >= len(args) else args[place]
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, rushlight.Tensor):
                    self.memory.copy_what_lies_in(tensor)
        return func(*args, **kwargs)


@contextmanager
def allow_mutation():
    memory = _Memory()
    with saved_tensors_hooks(memory.save, memory.read), _CopyBeforeWrite(memory):
        try:
            yield memory
        finally:
            memory.open = False
            memory.by_storage.clear()
