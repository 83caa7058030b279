"""What a ``.pt`` file says about its storages, in either format."""

import pickle

import rushlight
from rushlight.storage import TypedStorage, UntypedStorage

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C  # the first pickle of the format before 1.6
PROTOCOL_VERSION = 1001


def check_saved_id(saved_id, length, name):
    """Take apart a persistent id ``('storage', class, key, location, count)``, trusting none of it."""
    if not isinstance(saved_id, tuple) or len(saved_id) < length:
        raise pickle.UnpicklingError(f"load: {name}: malformed persistent id {saved_id!r}")
    tag, kind, key, location, count = (_text(part) for part in saved_id[:5])
    if tag != "storage":
        raise pickle.UnpicklingError(f"load: {name}: unknown persistent id {tag!r}")
    dtype = rushlight.uint8 if kind is UntypedStorage else getattr(kind, "_class_dtype", None)
    if dtype is None or not isinstance(key, str) or not isinstance(count, int) or count < 0:
        raise pickle.UnpicklingError(f"load: {name}: malformed persistent id {saved_id!r}")
    return tag, dtype, key, location, count


def _text(value):
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value


def as_saved(storage, kind, dtype):
    """A storage in the class that the file names."""
    if kind is UntypedStorage:
        return storage
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)
