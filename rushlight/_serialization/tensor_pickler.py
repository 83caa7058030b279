"""The pickler of ``.pt`` files: PyTorch's names for ours, and a short way for plain tensors."""

import operator
import pickle
import struct
import sys
from collections import OrderedDict
from functools import lru_cache

import rushlight
from rushlight._C import _plain_parts
from rushlight._command.names import own_name, public_name
from rushlight._utils import _rebuild_tensor_v2
from rushlight.storage import _name_of_dtype, _storage_class

STORAGE = "storage"  # what a saved storage's identity begins with
_PACK_INT = struct.Struct("<i").pack
_WRITTEN_AS = {
    "torch._utils._rebuild_from_type_v2": ("torch._tensor", "_rebuild_from_type_v2"),
    "torch.TensorBase": ("torch._C", "TensorBase"),
}


def _number(n):
    """A number in a pickle."""
    if 0 <= n < 256:
        return b"K%c" % n
    if -(2**31) <= n < 2**31:
        return b"J" + _PACK_INT(n)
    encoded = pickle.encode_long(n)
    return pickle.LONG1 + b"%c" % len(encoded) + encoded


@lru_cache(4096)
def _numbers(numbers):
    """A tuple of numbers in a pickle."""
    return b"(" + b"".join(map(_number, numbers)) + b"t"


class TensorPickler(pickle._Pickler):
    """Writes our names as PyTorch's, so that PyTorch finds its own classes in the file.

    Plain values and plain tensors take a short way: the general one asks three times for each number of a
    tensor's sizes whether it is something special.
    """

    _plain = frozenset((str, int, float, bool, type(None), tuple, list, dict))

    def __init__(self, file, protocol, saver):
        super().__init__(file, protocol)
        self.saver = saver
        self.persistent_id = saver.persistent_id
        self._classes = {}
        self._words = {}

    def save(self, obj, save_persistent_id=True):
        kind, known = type(obj), self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
        elif kind in self._plain and self.proto < 4:
            self.dispatch[kind](self, obj)
        elif kind is rushlight.Tensor and self.proto == 2 and self._save_plain(obj):
            pass
        else:
            super().save(obj, save_persistent_id)

    def _save_plain(self, tensor):
        """A tensor that is nothing but numbers, as a call of `_rebuild_tensor_v2`, mostly in one piece;
        false where the general way has to write it."""
        parts, saver = _plain_parts(tensor), self.saver
        if parts is None or saver.is_special:
            return False
        storage, identity, dtype, low, high, offset, size, stride, requires_grad = parts
        kind = self._classes.get(dtype)
        if kind is None:
            if dtype not in _name_of_dtype():
                return False
            kind = self._classes[dtype] = _storage_class(dtype)
        start = saver.place_bytes(identity, low, high) // dtype.itemsize
        number, location, count = saver.take(storage, identity, kind, dtype.itemsize)
        number = pickle.BINUNICODE + _PACK_INT(len(number)) + number.encode()
        numbers = (
            _number(count),
            b"tQ",
            _number(0 if 0 in size else offset - start),
            _numbers(size),
            _numbers(stride),
            pickle.NEWTRUE if requires_grad else pickle.NEWFALSE,
        )
        words = self._words.get((kind, location)) or self._find_words(kind, location)
        if words is None:  # some have to be spelt out
            for part in (_rebuild_tensor_v2, b"((", STORAGE, kind, number, location, *numbers, OrderedDict):
                self.write(part) if type(part) is bytes else self.save(part)
            self.write(b")RtR")
            self.memoize(tensor)
            return True
        memo = self.memo
        memo[id(tensor)] = index, _ = len(memo), tensor
        self.write(b"".join((words[0], number, words[1], *numbers, words[2], self.put(index))))
        return True

    def _find_words(self, kind, location):
        """What surrounds the numbers of such tensors, once the pickle knows the names in it."""
        names = [self.memo.get(id(n)) for n in (_rebuild_tensor_v2, STORAGE, kind, location, OrderedDict)]
        if None in names:
            return None
        rebuild, label, kind_, location_, hooks = (self.get(name[0]) for name in names)
        words = rebuild + b"((" + label + kind_, location_, hooks + b")RtR"
        self._words[kind, location] = words
        return words

    def reducer_override(self, obj):
        if isinstance(obj, (rushlight.dtype, type(rushlight.contiguous_format), rushlight.qscheme)):
            return str(obj).rpartition(".")[2]
        if type(obj) is rushlight.device:
            return rushlight.device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if type(obj) is rushlight.Size:
            return rushlight.Size, (tuple(obj),)
        return NotImplemented

    def save_global(self, obj, name=None):
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        module = getattr(obj, "__module__", None) or type(obj).__module__
        module = public_name(str(module))
        if module.partition(".")[0] != "torch" or self.proto >= 4:
            super().save_global(obj, name)
            return
        owner, _, member = name.rpartition(".")
        if owner and "<locals>" not in name:  # names with a dot exist from protocol 4 on
            holder = operator.attrgetter(owner)(sys.modules[own_name(module)])
            self.save_reduce(getattr, (holder, member), obj=obj)
            return
        if owner:
            raise pickle.PicklingError(f"Can't pickle {obj!r}: it is local to a function")
        if module == "torch._C" and not name.startswith("_"):
            module = "torch"
        module, name = _WRITTEN_AS.get(f"{module}.{name}", (module, name))
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    # The parent's table holds its own save_global, not ours.
    dispatch: dict = dict(pickle._Pickler.dispatch)  # type: ignore[misc]
    dispatch[type(save_global)] = save_global
