"""The pickler of ``.pt`` files: PyTorch's names for ours, and a short way for plain tensors."""

import pickle
import struct
from collections import OrderedDict

import rushlight
from rushlight import _utils

STORAGE = "storage"  # what a saved storage's identity begins with
_PACK_INT = struct.Struct("<i").pack
_WRITTEN_AS = {"torch._utils._rebuild_from_type_v2": ("torch._tensor", "_rebuild_from_type_v2")}


def _number(n):
    """A number in a pickle."""
    if 0 <= n < 256:
        return b"K%c" % n
    if -(2**31) <= n < 2**31:
        return b"J" + _PACK_INT(n)
    encoded = pickle.encode_long(n)
    return pickle.LONG1 + b"%c" % len(encoded) + encoded


def _numbers(numbers):
    """A tuple of numbers in a pickle."""
    return b"(" + b"".join(map(_number, numbers)) + b"t"


class TensorPickler(pickle._Pickler):
    """Writes our names as PyTorch's, so that PyTorch finds its own classes in the file.

    Plain values and plain tensors take a short way: the general one asks three times for each number of a
    tensor's sizes whether it is something special.
    """

    _plain = frozenset((str, int, float, bool, type(None), tuple, list, dict))

    def save(self, obj, save_persistent_id=True):
        kind, known = type(obj), self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
        elif kind in self._plain and self.proto < 4:
            self.dispatch[kind](self, obj)
        elif kind is rushlight.Tensor and self.proto == 2:
            reduced = obj.__reduce_ex__(2)
            if reduced[0] is _utils._rebuild_tensor_v2:
                self._save_tensor(obj, *reduced)
            else:
                self.save_reduce(*reduced, obj=obj)
        else:
            super().save(obj, save_persistent_id)

    def _save_tensor(self, tensor, rebuild, arguments):
        """A call of `rebuild` with names that the pickle already knows, in one piece."""
        storage, offset, size, stride, requires_grad, _ = arguments
        _, kind, number, location, count, *whole = self.persistent_id(storage)
        memo = self.memo
        names = [memo.get(id(name)) for name in (rebuild, STORAGE, kind, location, OrderedDict)]
        if None in names:  # the general way writes them down
            self.save_reduce(rebuild, arguments, obj=tensor)
            return
        rebuild, label, kind, location, hooks = (self.get(name[0]) for name in names)
        number = number.encode()
        parts = (
            rebuild,
            b"((",
            label,
            kind,
            pickle.BINUNICODE + _PACK_INT(len(number)) + number,
            location,
            _number(count),
            b"Nt" if whole else b"t",
            pickle.BINPERSID,
            _number(offset),
            _numbers(size),
            _numbers(stride),
            pickle.NEWTRUE if requires_grad else pickle.NEWFALSE,
            hooks,
            b")RtR",
        )
        self.write(b"".join(parts))
        self.memoize(tensor)

    def reducer_override(self, obj):
        if isinstance(obj, (rushlight.dtype, type(rushlight.contiguous_format))):
            return str(obj).rpartition(".")[2]
        if type(obj) is rushlight.device:
            return rushlight.device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if type(obj) is rushlight.Size:
            return rushlight.Size, (tuple(obj),)
        return NotImplemented

    def save_global(self, obj, name=None):
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        module = getattr(obj, "__module__", None) or type(obj).__module__
        top = str(module).partition(".")[0]
        if top not in ("rushlight", "torch") or self.proto >= 4:
            super().save_global(obj, name)
            return
        module = "torch" + module[len(top) :]
        if module.startswith("torch._C"):
            module = "torch"
        module, name = _WRITTEN_AS.get(f"{module}.{name}", (module, name))
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    # The parent's table holds its own save_global, not ours.
    dispatch: dict = dict(pickle._Pickler.dispatch)  # type: ignore[misc]
    dispatch[type(save_global)] = save_global
