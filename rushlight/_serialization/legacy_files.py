"""The format that PyTorch wrote before 1.6: pickles one after the other, then the bytes of the storages."""

import pickle
import struct
import sys

import rushlight
from rushlight._serialization.format import MAGIC_NUMBER, PROTOCOL_VERSION, as_saved, check_saved_id
from rushlight._serialization.load_errors import other_file
from rushlight._utils import _local
from rushlight.storage import UntypedStorage

_TAR_MARK = 257  # where a tar archive says what it is


def write_legacy(file, pickled, storages, protocol):
    """Write an object's pickle and what its persistent ids count: pairs of bytes and size of an element."""
    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle.dump(header, file, protocol)
    file.write(pickled)
    pickle.dump([str(key) for key in range(len(storages))], file, protocol)
    for content, itemsize in storages:
        file.write(struct.pack("=q", content.nbytes // itemsize))
        file.write(content)


def load_legacy(file, name, restore, unpickle):
    start = file.tell()
    if not file.read(1):
        raise EOFError(f"load: Ran out of input: {name} is empty")
    file.seek(start)
    head = file.read(_TAR_MARK + 5)
    if head[_TAR_MARK:] == b"ustar":
        raise RuntimeError(
            f"load: {name} is in the tar format of PyTorch 0.1; save it again with a newer version"
        )
    if error := other_file(head, name):
        raise error
    file.seek(start)

    loaded = {}

    def persistent_load(saved_id):
        if saved_id and isinstance(saved_id, tuple) and saved_id[0] in ("module", b"module"):
            return saved_id[1]  # source text of a class came with it; the class itself is what counts
        _, dtype, key, location, count = check_saved_id(saved_id, 5, name)
        if key not in loaded:
            _check_room(file, count * dtype.itemsize, name)
            loaded[key] = restore(UntypedStorage(count * dtype.itemsize), location), dtype
        storage, _ = loaded[key]
        return _view(storage, saved_id, dtype, name)

    first = unpickle(file, persistent_load)
    if type(first) is not int or first != MAGIC_NUMBER:
        raise RuntimeError(
            f"load: {name} is not a file that torch.save wrote: Invalid magic number; corrupt file?"
        )
    version = unpickle(file, persistent_load)
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"load: {name}: Invalid protocol version: {version}")
    system = unpickle(file, persistent_load)
    little = system.get("little_endian", True) if isinstance(system, dict) else True
    _local.unfilled = checks = []
    try:
        result = unpickle(file, persistent_load)
    finally:
        del _local.unfilled
    keys = unpickle(file, persistent_load)
    if not isinstance(keys, (list, tuple)):
        raise RuntimeError(
            f"load: {name}: the list of storages is a {type(keys).__name__}; the file is damaged"
        )
    for key in keys:
        key = key.decode() if isinstance(key, bytes) else key
        if key not in loaded:
            raise RuntimeError(
                f"load: {name}: storage {key!r} is not used by any tensor; the file is damaged"
            )
        _fill(*loaded[key], file, little, name)
    for check in checks:
        check()
    return result


def _check_room(file, nbytes, name):
    """A size is believed only if the rest of the file could hold it."""
    here = file.tell()
    end = file.seek(0, 2)
    file.seek(here)
    if nbytes > end:
        raise RuntimeError(f"load: {name}: a storage of {nbytes} bytes does not fit the file; it is damaged")


def _view(storage, saved_id, dtype, name):
    view = saved_id[5] if len(saved_id) > 5 else None
    if view is None:
        return as_saved(storage, saved_id[1], dtype)
    _, offset, size = view
    item = dtype.itemsize
    part = UntypedStorage._from_buffer(storage, offset * item, size * item)
    return as_saved(part, saved_id[1], dtype)


def _fill(storage, dtype, file, little, name):
    head = file.read(8)
    count = struct.unpack("<q" if little else ">q", head)[0] if len(head) == 8 else -1
    if count * dtype.itemsize != storage.nbytes():
        raise RuntimeError(
            f"load: {name} ends early or is damaged: storage of {storage.nbytes()} bytes, found {count}"
        )
    data = storage if storage.device.type == "cpu" else bytearray(storage.nbytes())
    _read_all(file, memoryview(data), name)
    if data is not storage:
        content = UntypedStorage._from_buffer(data, 0, len(data))
        rushlight.empty(0, dtype=rushlight.uint8, device=storage.device).set_(storage).copy_(
            rushlight.empty(0, dtype=rushlight.uint8).set_(content)
        )
    if little != (sys.byteorder == "little"):
        storage.byteswap(dtype)


def _read_all(file, view, name):
    while view.nbytes:
        if hasattr(file, "readinto"):
            n = file.readinto(view)
        else:
            data = file.read(view.nbytes)
            n = len(data)
            view[:n] = data
        if not n:
            raise RuntimeError(f"load: {name} ends early: unexpected end of file in a storage")
        view = view[n:]
