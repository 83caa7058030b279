"""Memory of storages behind a descriptor or a file, for programs that hand it on themselves.

`torch.multiprocessing` has a way of its own (`_C._shared_move`). Here a storage's bytes move into a file in
memory; its name is that of the descriptor in this process, so it can be opened while this process holds the
storage.
"""

import mmap
import os
import weakref

_descriptors: dict = {}  # address of a mapping -> the descriptor behind it


def is_mapped(storage):
    return bool(_descriptors) and storage.data_ptr() in _descriptors


def _remember(storage, mapping, descriptor):
    address = storage.data_ptr()
    _descriptors[address] = descriptor

    def forget():
        os.close(_descriptors.pop(address))

    weakref.finalize(mapping, forget)


def _move(storage):
    """The descriptor behind a storage, which moves there first."""
    if (found := _descriptors.get(storage.data_ptr())) is not None:
        return found
    descriptor, size = os.memfd_create("storage", os.MFD_CLOEXEC), storage.nbytes()
    os.ftruncate(descriptor, max(size, 1))
    mapping = mmap.mmap(descriptor, max(size, 1))
    moved = type(storage)._from_buffer(mapping, 0, size)
    memoryview(moved)[:] = memoryview(storage)
    storage._swap_contents(moved)
    _remember(storage, mapping, descriptor)
    return descriptor


def share_descriptor(storage):
    """A descriptor of the caller's own for the storage's memory, and the number of bytes."""
    return os.dup(_move(storage)), storage.nbytes()


def from_descriptor(cls, descriptor, size):
    """A storage on memory that a descriptor stands for; the descriptor stays the caller's."""
    mapping = mmap.mmap(descriptor, max(size, 1))
    storage = cls._from_buffer(mapping, 0, size)
    _remember(storage, mapping, os.dup(descriptor))
    return storage


def share_name(storage):
    """(nothing, the name, the number of bytes); the first would be a process that keeps the file."""
    return b"", f"/proc/{os.getpid()}/fd/{_move(storage)}".encode(), storage.nbytes()


def from_name(cls, name, size):
    descriptor = os.open(name, os.O_RDWR | os.O_CLOEXEC)
    try:
        return from_descriptor(cls, descriptor, size)
    finally:
        os.close(descriptor)


def map_file(cls, filename, shared, nbytes):
    if nbytes < 0:
        raise RuntimeError(f"from_file: size must not be negative, but got {nbytes} bytes")
    try:
        if shared:
            with open(filename, "ab") as file:  # makes the file where there is none
                if file.tell() < nbytes:
                    file.truncate(nbytes)
        with open(filename, "r+b" if shared else "rb") as file:
            length = file.seek(0, 2)
            if length < nbytes:
                raise RuntimeError(
                    f"from_file: file <{filename}> of {length} bytes is smaller than the {nbytes} asked for"
                )
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            storage = (
                cls._from_buffer(mmap.mmap(file.fileno(), nbytes, access=access), 0, nbytes)
                if nbytes
                else cls(0)
            )
    except OSError as error:
        how = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{filename}> in {how} mode: {error.strerror} ({error.errno})"
        ) from None
    if shared:
        storage.filename = str(filename)
    return storage


def write_file(storage, file, save_size, element_size):
    """The bytes, after the number of elements where that is asked for."""
    if storage.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    content = memoryview(storage.cpu())
    if save_size:
        file.write((len(content) // element_size).to_bytes(8, "little"))
    file.write(content)
