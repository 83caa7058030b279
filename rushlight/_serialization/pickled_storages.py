"""Storages as bytes, for pickles of single tensors: files in PyTorch's older format, made and read by hand.

The file of one storage differs only in the storage's type, size and content. PyTorch reads it, too.
"""

import pickle
import struct
import sys
from functools import cache

from rushlight._serialization.format import MAGIC_NUMBER, PROTOCOL_VERSION
from rushlight._serialization.settings import skips_data
from rushlight.storage import TypedStorage, UntypedStorage, _name_of_dtype, _storage_type_to_dtype_map

_SYSTEM = {
    "protocol_version": PROTOCOL_VERSION,
    "little_endian": sys.byteorder == "little",
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


def _text(word):
    """A string in a pickle."""
    return b"X" + struct.pack("<i", len(word)) + word


# Around the name of the storage's class and the number of its elements.
_HEAD = b"".join(pickle.dumps(header, 2) for header in (MAGIC_NUMBER, PROTOCOL_VERSION, _SYSTEM))
_HEAD += b"\x80\x02(" + _text(b"storage") + b"ctorch\n"
_MIDDLE = b"\n" + _text(b"0") + _text(b"cpu") + b"J"
_TAIL = b"NtQ." + pickle.dumps(["0"], 2)


@cache
def _start(dtype):
    """The file up to the number of elements, or None for types without a class of their own."""
    name = _name_of_dtype().get(dtype)
    return name and _HEAD + name.encode() + _MIDDLE


@cache
def _dtypes():
    return _storage_type_to_dtype_map()


def to_bytes(storage):
    """The bytes, or None for storages that take the general way."""
    if not isinstance(storage, TypedStorage) or storage.device.type != "cpu" or skips_data():
        return None
    start, content = _start(storage.dtype), memoryview(storage.untyped())
    count = content.nbytes // storage.dtype.itemsize
    if start is None or count >= 2**31 or content.nbytes % storage.dtype.itemsize:
        return None
    return b"".join((start, struct.pack("<i", count), _TAIL, struct.pack("=q", count), content))


def from_bytes(data):
    """The storage, or None for bytes that take the general way."""
    if not isinstance(data, (bytes, bytearray)):
        return None
    end = data.find(b"\n", len(_HEAD), len(_HEAD) + 32)
    if end < 0 or not data.startswith(_HEAD) or not data.startswith(_MIDDLE, end):
        return None
    at = end + len(_MIDDLE)
    dtype = _dtypes().get(data[len(_HEAD) : end].decode("ascii", "replace"))
    if dtype is None or not data.startswith(_TAIL, at + 4):
        return None
    (count,) = struct.unpack_from("<i", data, at)
    at += 4 + len(_TAIL)
    nbytes = count * dtype.itemsize
    if count < 0 or len(data) != at + 8 + nbytes or struct.unpack_from("=q", data, at) != (count,):
        return None
    storage = UntypedStorage(nbytes)
    if nbytes:
        memoryview(storage)[:] = memoryview(data)[at + 8 :]
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)
