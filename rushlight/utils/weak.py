"""Weak references to tensors and other objects, compared by identity, and dictionaries of such keys."""

import weakref
from _weakrefset import _IterationGuard  # type: ignore[attr-defined]
from collections.abc import MutableMapping
from weakref import ref

from rushlight import Tensor

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakRef",
    "WeakTensorKeyDictionary",
    "WeakTensorRefKey",
]

WeakRef = ref


class WeakIdRef(weakref.ref):
    """A weak reference that equals another one if both refer to the same object; tensors' own ``==`` compares
    elements."""

    __slots__ = ("_id",)

    def __new__(cls, key, callback=None):
        return super().__new__(cls, key, callback)

    def __init__(self, key, callback=None):
        self._id = id(key)
        super().__init__(key, callback)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        mine, theirs = self(), other()
        # A dead reference equals itself only: its address may be another object's by now.
        return mine is theirs if mine is not None and theirs is not None else self is other

    def __ne__(self, other):  # the base class has one of its own
        return not self == other


WeakTensorRefKey = WeakIdRef


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary whose keys are told apart by identity and are not kept alive by it."""

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.data, self.ref_type = {}, ref_type
        self._iterating, self._pending_removals = set(), []

        def remove(dead, weak_self=ref(self)):
            self = weak_self()
            if self is None:
                return
            if self._iterating:
                self._pending_removals.append(dead)
            else:
                self.data.pop(dead, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def _commit_removals(self):
        while self._pending_removals:
            self.data.pop(self._pending_removals.pop(), None)

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value):
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key):
        del self.data[self.ref_type(key)]

    def __contains__(self, key):
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # cannot be referred to weakly, and so is no key
            return False

    def __len__(self):
        return sum(1 for _ in self)

    def __iter__(self):
        with _IterationGuard(self):
            for weak in list(self.data):
                key = weak()
                if key is not None:
                    yield key

    def __repr__(self):
        return f"<{type(self).__name__} at {id(self):#x}>"

    def copy(self):
        return type(self)(self, ref_type=self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo):
        from copy import deepcopy

        made = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            made[key] = deepcopy(value, memo)
        return made

    def keyrefs(self):
        """The references, dead ones perhaps among them."""
        return list(self.data)

    def __or__(self, other):
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other):
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor, which gives the tensor or None when it is called."""

    def __init__(self, tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = WeakRef(tensor)

    def __call__(self):
        return self.ref()
