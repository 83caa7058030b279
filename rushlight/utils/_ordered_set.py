"""A set that remembers in which order its members came."""

from collections.abc import MutableSet

__all__ = ["OrderedSet"]


class OrderedSet(MutableSet):
    """Members in the order of their coming; operations of sets keep the left operand's order."""

    __slots__ = ("_dict",)

    def __init__(self, iterable=None):
        self._dict = dict.fromkeys(iterable) if iterable is not None else {}

    def __class_getitem__(cls, item):
        import types

        return types.GenericAlias(cls, item)

    def __contains__(self, elem):
        return elem in self._dict

    def __iter__(self):
        return iter(self._dict)

    def __reversed__(self):
        return reversed(self._dict)

    def __len__(self):
        return len(self._dict)

    def __repr__(self):
        return f"{type(self).__name__}({list(self)!r})"

    def __getstate__(self):
        return list(self._dict)

    def __setstate__(self, state):
        self._dict = dict.fromkeys(state)

    def add(self, elem):
        self._dict[elem] = None

    def discard(self, elem):
        self._dict.pop(elem, None)

    def clear(self):
        self._dict.clear()

    def pop(self):
        """The member that came last."""
        if not self._dict:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def copy(self):
        return type(self)(self._dict)

    def update(self, *others):
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def union(self, *others):
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others):
        kept = [set(other) for other in others]
        return type(self)(elem for elem in self if all(elem in other for other in kept))

    def intersection_update(self, *others):
        self._dict = self.intersection(*others)._dict

    def difference(self, *others):
        gone = set().union(*others)
        return type(self)(elem for elem in self if elem not in gone)

    def difference_update(self, *others):
        self._dict = self.difference(*others)._dict

    def symmetric_difference(self, other):
        return self ^ type(self)(other)

    def symmetric_difference_update(self, other):
        self._dict = self.symmetric_difference(other)._dict

    def issubset(self, other):
        return all(elem in other for elem in self)

    def issuperset(self, other):
        return all(elem in self for elem in other)
