"""`ScriptList` and `ScriptDict`: a list or dictionary that scripts and Python share.

Scripts copy the plain lists and dictionaries that they are called with. What `torch.jit.script` makes of
one is of one type, which every write is checked against, so scripts take it as it is and both sides see all
writes."""

from collections.abc import Mapping

from rushlight.jit import _types as t
from rushlight.jit._annotations import value_type
from rushlight.jit._call_check import converted

__all__ = ["ScriptDict", "ScriptList"]


def _common_type(values, container):
    """The one type of the elements, which may be None besides; of no elements it is Tensor."""
    kinds = dict.fromkeys(map(value_type, values))
    optional = len(kinds) > 1 and kinds.pop(t.NONE, None)
    if not kinds:
        return t.TENSOR
    if len(kinds) > 1 or not all(kind.known for kind in kinds):
        from rushlight.jit import Error

        raise Error(
            f"Unable to infer type of {container}: its elements must be of one type that TorchScript has, "
            f"found {' and '.join(str(kind) if kind.known else 'an unknown type' for kind in kinds)}"
        )
    (kind,) = kinds
    return t.optional(kind) if optional else kind


class ScriptList(list):
    """A list with elements of one type."""

    def __init__(self, values=()):
        values = list(values)
        self._element = _common_type(values, "list")
        self._script_type = t.list_of(self._element)
        super().__init__(values)

    def __reduce__(self):
        return type(self), (list(self),)

    def __contains__(self, value):
        return super().__contains__(converted(value, self._element))

    def __getitem__(self, index):
        found = super().__getitem__(index)
        return self._like(found) if isinstance(index, slice) else found

    def __setitem__(self, index, value):
        if isinstance(index, slice):
            value = [converted(v, self._element) for v in value]
            if len(value) != len(range(*index.indices(len(self)))):
                raise RuntimeError("Left and right hand size of slice assignment have different sizes")
        else:
            value = converted(value, self._element)
        super().__setitem__(index, value)

    def _like(self, values):
        made = type(self)()
        made._element, made._script_type = self._element, self._script_type
        made.extend(values)
        return made

    def copy(self):
        return self._like(self)

    def append(self, value):
        super().append(converted(value, self._element))

    def insert(self, index, value):
        super().insert(index, converted(value, self._element))

    def extend(self, values):
        super().extend([converted(v, self._element) for v in values])

    def __iadd__(self, values):  # type: ignore[misc]
        self.extend(values)
        return self

    def count(self, value):
        return super().count(converted(value, self._element))

    def remove(self, value):
        super().remove(converted(value, self._element))


class ScriptDict(dict):
    """A dictionary with keys of one type and values of one type."""

    def __init__(self, values=()):
        values = dict(values)
        self._key, self._item = _common_type(values, "dict"), _common_type(values.values(), "dict")
        self._key = self._key if values else t.STR
        self._script_type = t.dict_of(self._key, self._item)
        super().__init__(values)

    def __reduce__(self):
        return type(self), (dict(self),)

    def _known_key(self, key):
        try:
            return converted(key, self._key)
        except TypeError:
            raise KeyError(key) from None

    def __contains__(self, key):
        return super().__contains__(self._known_key(key))

    def __getitem__(self, key):
        return super().__getitem__(self._known_key(key))

    def __setitem__(self, key, value):
        super().__setitem__(converted(key, self._key), converted(value, self._item))

    def __delitem__(self, key):
        super().__delitem__(converted(key, self._key))

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, values=(), /, **more):
        pairs = values.items() if isinstance(values, Mapping) else values
        for key, value in [*pairs, *more.items()]:
            self[key] = value

    def __ior__(self, values):  # type: ignore[misc]
        self.update(values)
        return self
