"""Tables of hooks, and handles that undo the registration of a hook."""

import sys
from _thread import RLock
from _weakref import ref
from collections import OrderedDict

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

_lock = RLock()


class _SharedTable(OrderedDict):
    """An `OrderedDict` that threads may change while others walk over it. Its own methods are not made for
    that in CPython 3.13 without a global lock."""

    def __reduce__(self):  # in files it is what PyTorch has there
        return OrderedDict, (list(self.items()),)

    def __iter__(self):
        with _lock:
            return iter(list(super().__iter__()))

    def keys(self):
        return list(self)

    def values(self):
        with _lock:
            return list(super().values())

    def items(self):
        with _lock:
            return list(super().items())

    def copy(self):
        return type(self)(self.items())

    __copy__ = copy


def _locked(name):
    plain = getattr(OrderedDict, name)

    def method(self, *args, **kwargs):
        with _lock:
            return plain(self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in ("__setitem__", "__delitem__", "pop", "popitem", "setdefault", "update", "clear", "move_to_end"):
    setattr(_SharedTable, _name, _locked(_name))

# What hooks are filed in.
_HookTable = _SharedTable if "t" in getattr(sys, "abiflags", "") else OrderedDict


class RemovableHandle:
    """Returned by every ``register_*hook``; ``remove()`` takes the hook out again. Also a context manager.

    Only a weak reference to the dictionary of hooks is held, so a handle keeps no module alive.
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = ref(hooks_dict)
        with _lock:
            self.id = RemovableHandle.next_id
            RemovableHandle.next_id += 1
        extras = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.extra_dict_ref = tuple(ref(d) for d in extras)

    def remove(self):
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state):
        hooks, self.id, *extras = state
        # The dictionary may be gone: an empty one that nobody else holds stands in for it.
        self.hooks_dict_ref = ref(OrderedDict() if hooks is None else hooks)
        extras = extras[0] if extras else ()
        self.extra_dict_ref = tuple(ref(OrderedDict() if d is None else d) for d in extras)
        with _lock:
            RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def unserializable_hook(f):
    """Mark a hook that pickling a tensor should warn about, since hooks are not saved."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    import warnings

    for hook in (tensor._backward_hooks or {}).values():
        if hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                "decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
