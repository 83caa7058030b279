"""Saved tensors that may be changed: whoever writes to memory that backward needs makes a copy first."""

import threading
import weakref
from contextlib import contextmanager

import rushlight
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.utils._python_dispatch import TorchDispatchMode

__all__ = ["allow_mutation"]


class _Saved:
    """One saved tensor, held by all nodes that saved it; `_Memory` says where its values are."""

    __slots__ = ("__weakref__",)


class _Memory:
    """Which saved tensors lie in which storage, and the copies of those that were written to since."""

    def __init__(self):
        self.cloned = weakref.WeakKeyDictionary()  # saved tensor: its copy
        self.original = weakref.WeakKeyDictionary()  # saved tensor: the caller's, as long as it is unchanged
        self.tid_to_weakhandle = weakref.WeakValueDictionary()  # tensor and version: saved tensor
        self.by_storage = {}

    @staticmethod
    def _key(tensor):
        return tensor.untyped_storage()._cdata

    def save(self, tensor):
        key = self._key(tensor)
        place = (tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype, tensor.is_conj())
        tid = (key, place, tensor._version)
        saved = self.tid_to_weakhandle.get(tid)
        if saved is None:
            saved = self.tid_to_weakhandle[tid] = _Saved()
            self.original[saved] = tensor.detach()
            self.by_storage.setdefault(key, weakref.WeakSet()).add(saved)
        return saved

    def read(self, saved):
        found = self.cloned.get(saved)
        if found is None:
            found = self.original.get(saved)
        if found is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
            )
        return found

    def copy_what_lies_in(self, tensor):
        for saved in self.by_storage.pop(self._key(tensor), ()):
            self.cloned[saved] = self.original.pop(saved).clone()

    def clear(self):
        for known in (self.cloned, self.original, self.tid_to_weakhandle, self.by_storage):
            known.clear()


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


_open = threading.local()  # .here: whether this thread is in such a context


@contextmanager
def allow_mutation():
    if getattr(_open, "here", False):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    memory = _Memory()
    _open.here = True
    try:
        with saved_tensors_hooks(memory.save, memory.read), _CopyBeforeWrite(memory):
            yield memory
    finally:
        memory.clear()
        _open.here = False
