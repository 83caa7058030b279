"""Lists and dicts that lie in one buffer of shared memory, for all processes that read them.

A process that only reads an inherited list still writes to it: every look at an object changes its reference
count, and so copies its page. With many workers the memory of the records is multiplied within one epoch. A
packed list holds its records pickled, one after the other; looking at one makes a fresh object of it and
changes nothing.
"""

import pickle
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import is_

import rushlight

LONG = 10_000  # entries from which lists and dicts are packed without being asked to
_DEPTH = 6  # of containers in a record that count as plain data
_ATOMS = {str, bytes, int, float, complex, bool, type(None)}
_FIXED, _CHANGING = {tuple, frozenset}, {list, dict, set}


def _shared(data):
    storage = rushlight.UntypedStorage._new_shared(max(len(data), 1))
    if len(data):
        memoryview(storage)[: len(data)] = data
    return storage


class _Records:
    """Pickled objects, one after the other, with the places where each begins and ends."""

    def __init__(self, values):
        data, ends = bytearray(), array("q", [0])
        for value in values:
            data += pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
            ends.append(len(data))
        self._set(_shared(data), _shared(memoryview(ends).cast("B")))

    def _set(self, data, ends):
        self._storages = data, ends
        self._data = memoryview(data).toreadonly()
        self._ends = memoryview(ends).toreadonly().cast("q")

    def __len__(self):
        return len(self._ends) - 1

    def __getitem__(self, i):
        return pickle.loads(self._data[self._ends[i] : self._ends[i + 1]])

    def __reduce__(self):
        return _rebuild_records, self._storages


def _rebuild_records(data, ends):
    records = _Records.__new__(_Records)
    records._set(data, ends)
    return records


class PackedList(Sequence):
    """A list of picklable values in shared memory, to be read only: `PackedList(values)`.

    It has all that lists have but what changes them, is equal to lists, and `+`, `*` and slices give lists.
    What it gives are copies: changing one does not change the list.
    """

    def __init__(self, values=()):
        self._records = _Records(values)

    def __len__(self):
        return len(self._records)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self._records[i] for i in range(*index.indices(len(self)))]
        try:
            i = index.__index__()
        except AttributeError:
            raise TypeError(f"list indices must be integers or slices, not {type(index).__name__}") from None
        n = len(self)
        if not -n <= i < n:
            raise IndexError("list index out of range")
        return self._records[i % n if n else i]

    def __iter__(self):
        return map(self._records.__getitem__, range(len(self)))

    def __eq__(self, other):
        if not isinstance(other, (list, PackedList)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other):
        return list(self) + list(other)

    def __radd__(self, other):
        return list(other) + list(self)

    def __mul__(self, count):
        return list(self) * count

    __rmul__ = __mul__

    def copy(self):
        return list(self)

    def __reduce__(self):
        return _rebuild_list, (type(self), self._records)

    def __repr__(self):
        return f"PackedList of {len(self)} values"


def _rebuild_list(cls, records):
    packed = cls.__new__(cls)
    packed._records = records
    return packed


def _plain_key(key):
    """Bytes that are the same for equal keys, in every process; None for keys that are not plain data."""
    kind = type(key)
    if kind is str:
        return b"s" + key.encode("utf-8", "surrogatepass")
    if kind is bytes:
        return b"b" + key
    if kind in (int, bool) or (kind is float and key.is_integer()):
        return b"n%d" % int(key)
    if kind is float or key is None:
        return repr(key).encode()
    if kind is tuple:
        parts = [_plain_key(part) for part in key]
        return None if None in parts else b"t" + b"".join(b"%d:%s" % (len(part), part) for part in parts)
    return None


class PackedDict(Mapping):
    """A dict of picklable values in shared memory, to be read only: `PackedDict(mapping)`.

    Keys are strings, bytes, numbers, None, and tuples of these. They keep their order. Values are copies.
    """

    def __init__(self, values=()):
        items = values.items() if isinstance(values, Mapping) else values
        items = list(dict(items).items())
        plain = [_plain_key(key) for key, _ in items]
        if None in plain:
            bad = items[plain.index(None)][0]
            raise TypeError(
                f"PackedDict: keys are strings, bytes, numbers, None or tuples of these, not {bad!r}"
            )
        self._keys = _Records(key for key, _ in items)
        self._values = _Records(value for _, value in items)
        hashes = [zlib.crc32(key) for key in plain]
        order = sorted(range(len(hashes)), key=hashes.__getitem__)
        self._set(
            _shared(memoryview(array("q", (hashes[i] for i in order))).cast("B")),
            _shared(memoryview(array("q", order)).cast("B")),
        )

    def _set(self, hashes, order):
        n = 8 * len(self._keys)
        self._storages = hashes, order
        self._hashes, self._order = (memoryview(s).toreadonly()[:n].cast("q") for s in self._storages)

    def __len__(self):
        return len(self._keys)

    def _place(self, key):
        plain = _plain_key(key)
        if plain is None:
            hash(key)
            return None
        wanted = zlib.crc32(plain)
        at = bisect_left(self._hashes, wanted)
        while at < len(self._hashes) and self._hashes[at] == wanted:
            if self._keys[self._order[at]] == key:
                return self._order[at]
            at += 1
        return None

    def __getitem__(self, key):
        place = self._place(key)
        if place is None:
            raise KeyError(key)
        return self._values[place]

    def __contains__(self, key):
        return self._place(key) is not None

    def __iter__(self):
        return map(self._keys.__getitem__, range(len(self)))

    def __or__(self, other):
        return dict(self) | dict(other)

    def __ror__(self, other):
        return dict(other) | dict(self)

    def copy(self):
        return dict(self)

    def __reduce__(self):
        return _rebuild_dict, (type(self), self._keys, self._values, *self._storages)

    def __repr__(self):
        return f"PackedDict of {len(self)} values"


def _rebuild_dict(cls, keys, values, hashes, order):
    packed = cls.__new__(cls)
    packed._keys, packed._values = keys, values
    packed._set(hashes, order)
    return packed


# --- in place of lists and dicts that datasets own, who may want to change them


class _ListInPlace(PackedList):
    """Passes for the list it was made of. Whoever changes it gets a list of his own from then on."""

    __class__ = property(lambda self: list)

    def _thaw(self):
        if type(self._records) is not list:
            self._records = list(self)
        return self._records


class _DictInPlace(PackedDict):
    """The same for a dict."""

    __class__ = property(lambda self: dict)
    _own = None

    def _thaw(self):
        if self._own is None:
            self._own = dict(self)
        return self._own

    def __len__(self):
        return super().__len__() if self._own is None else len(self._own)

    def __iter__(self):
        return super().__iter__() if self._own is None else iter(self._own)

    def __getitem__(self, key):
        return super().__getitem__(key) if self._own is None else self._own[key]

    def __contains__(self, key):
        return super().__contains__(key) if self._own is None else key in self._own

    def __reduce__(self):
        return super().__reduce__() if self._own is None else (dict, (self._own,))


def _changing(name):
    def method(self, *args, **kwargs):
        return getattr(self._thaw(), name)(*args, **kwargs)

    method.__name__ = name
    return method


for (
    _name
) in "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove reverse sort".split():
    setattr(_ListInPlace, _name, _changing(_name))
for _name in "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update".split():
    setattr(_DictInPlace, _name, _changing(_name))


# --- which parts of a dataset are packed


def _plainness(values):
    """2 for plain data that can't change, 1 for plain data with lists or dicts in it, 0 for anything else."""
    level, result = values, 2
    for _ in range(_DEPTH):
        kinds = set(map(type, level)) - _ATOMS
        if not kinds:
            return result
        if kinds - _FIXED - _CHANGING:
            return 0
        if kinds & _CHANGING:
            result = 1
        inner = [value for value in level if type(value) not in _ATOMS]
        keys = chain.from_iterable(value for value in inner)
        level = list(chain(keys, *(value.values() for value in inner if type(value) is dict)))
    return 0


class Packing:
    """Packs the lists and dicts of a dataset, and remembers what it packed as long as that has not changed.

    Without `everything`, only long ones of plain data: strings, numbers, and tuples, lists, dicts of them."""

    def __init__(self, everything=False):
        self._everything = everything
        self._kept = {}  # id -> (the list or dict, what was in it, packed)

    def of_dataset(self, dataset):
        """The dataset, or one like it with packed parts in place of lists and dicts."""
        from rushlight.utils.data.dataset import Dataset

        if type(dataset) in (list, dict):
            return self._packed(dataset)
        if not isinstance(dataset, Dataset) or not _copies_plainly(type(dataset)):
            return dataset
        parts = {name: self._part(value) for name, value in dataset.__dict__.items()}
        if all(map(is_, parts.values(), dataset.__dict__.values())):
            return dataset
        copy = object.__new__(type(dataset))
        copy.__dict__.update(parts)
        return copy

    def _part(self, value):
        from rushlight.utils.data.dataset import Dataset

        several = value.values() if type(value) is dict else value
        if type(value) in (list, tuple, dict) and value and all(isinstance(v, Dataset) for v in several):
            parts = [self.of_dataset(v) for v in several]
            return type(value)(zip(value, parts) if type(value) is dict else parts)
        return self.of_dataset(value)

    def _packed(self, values):
        entries = values if type(values) is list else list(chain.from_iterable(values.items()))
        if not self._everything and len(values) < LONG:
            return values
        kept = self._kept.get(id(values))
        if kept is not None and len(kept[1]) == len(entries) and all(map(is_, kept[1], entries)):
            return kept[2]
        plain = _plainness(entries)
        if not plain and not self._everything:
            return values
        try:
            packed = _ListInPlace(values) if type(values) is list else _DictInPlace(values)
        except Exception as error:
            if self._everything:
                raise TypeError(f"DataLoader: pack_dataset=True, but packing failed: {error}") from error
            return values
        if plain == 2:  # nothing in it can change without our noticing
            self._kept[id(values)] = values, list(entries), packed
        return packed


def _copies_plainly(cls):
    """Whether an object of the class is its `__dict__` and nothing else."""
    special = "__setattr__ __getattribute__ __new__ __reduce__ __reduce_ex__ __getstate__".split()
    return (
        all(getattr(cls, name, None) is getattr(object, name, None) for name in special)
        and not any(hasattr(cls, name) for name in ("__copy__", "__setstate__", "__del__", "__getattr__"))
        and not any(base.__dict__.get("__slots__") for base in cls.__mro__)
    )


def pack(dataset):
    """The dataset with all its lists and dicts packed: for those who prepare it once, for many loaders."""
    return Packing(everything=True).of_dataset(dataset)
