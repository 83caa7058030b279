"""Tensors in files of the safetensors format: a table in JSON, then the bytes. Reading maps the file, looks
at the table only, and trusts none of it."""

import json
import mmap
import os
from math import prod

import rushlight
from rushlight._serialization.zip_records import write_atomically
from rushlight._utils import _rebuild_tensor
from rushlight.storage import TypedStorage, UntypedStorage

__all__ = ["SafetensorError", "load", "load_file", "safe_open", "save", "save_file"]

_LARGEST_HEADER = 100_000_000
_DTYPES = {
    "F64": rushlight.float64,
    "F32": rushlight.float32,
    "F16": rushlight.float16,
    "BF16": rushlight.bfloat16,
    "I64": rushlight.int64,
    "I32": rushlight.int32,
    "I16": rushlight.int16,
    "I8": rushlight.int8,
    "U64": rushlight.uint64,
    "U32": rushlight.uint32,
    "U16": rushlight.uint16,
    "U8": rushlight.uint8,
    "BOOL": rushlight.bool,
    "C64": rushlight.complex64,
    "F8_E4M3": rushlight.float8_e4m3fn,
    "F8_E5M2": rushlight.float8_e5m2,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class SafetensorError(Exception):
    """A file is not in the format, or names something that it does not hold."""


# --- writing


def _check_tensor(name, tensor):
    if not isinstance(name, str):
        raise ValueError(f"safetensors: names of tensors are strings, but got {name!r}")
    if not isinstance(tensor, rushlight.Tensor):
        raise ValueError(
            f"safetensors: key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}"
        )
    if tensor.layout is not rushlight.strided or tensor.dtype not in _NAMES:
        raise ValueError(
            f"safetensors: `{name}` is {tensor.layout}, {tensor.dtype}, which the format has not"
        )
    return tensor.detach().cpu().contiguous()


def _layout(tensors, metadata):
    """The header's bytes, and the tensors in the order in which their bytes follow."""
    header = {}
    if metadata is not None:
        if not all(isinstance(part, str) for item in metadata.items() for part in item):
            raise ValueError("safetensors: metadata maps strings to strings")
        header["__metadata__"] = dict(metadata)
    checked = {name: _check_tensor(name, tensor) for name, tensor in tensors.items()}
    # The widest types first, so that all are aligned.
    order = sorted(checked.items(), key=lambda item: (-item[1].element_size(), item[0]))
    at = 0
    for name, tensor in order:
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, end],
        }
        at = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, [tensor for _, tensor in order]


def _bytes_of(tensor):
    flat = tensor.reshape(-1).view(rushlight.uint8) if tensor.numel() else None
    return memoryview(flat.numpy()) if flat is not None else b""


def save_file(tensors, filename, metadata=None):
    """Write a dict of tensors to a file, at once or not at all.

    Args:
        metadata: strings by strings, kept in the file's header.
    """
    header, order = _layout(tensors, metadata)

    def write(file):
        file.write(header)
        for tensor in order:
            file.write(_bytes_of(tensor))

    write_atomically(os.fsdecode(filename), write)


def save(tensors, metadata=None):
    """A dict of tensors as bytes."""
    header, order = _layout(tensors, metadata)
    return b"".join([header, *(bytes(_bytes_of(tensor)) for tensor in order)])


# --- reading


def looks_like(head, size):
    """Whether a file of this size that begins with these bytes may be in the format."""
    return len(head) > 8 and 2 <= int.from_bytes(head[:8], "little") <= size - 8 and head[8:9] == b"{"


def _no_duplicates(pairs):
    table = dict(pairs)
    if len(table) != len(pairs):
        raise SafetensorError("safetensors: a name occurs twice in the header")
    return table


def _read_header(content, name):
    """The table of a buffer, checked, and where its data begins."""
    size = len(content)
    if size < 8:
        raise SafetensorError(f"safetensors: {name} is too short, {size} bytes")
    length = int.from_bytes(content[:8], "little")
    if length > min(size - 8, _LARGEST_HEADER):
        raise SafetensorError(f"safetensors: {name} has {size} bytes, but a header of {length}")
    try:
        table = json.loads(bytes(content[8 : 8 + length]).decode(), object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"safetensors: the header of {name} is not JSON: {error}") from None
    if not isinstance(table, dict):
        raise SafetensorError(f"safetensors: the header of {name} is not a table")
    metadata = table.pop("__metadata__", None)
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())
    ):
        raise SafetensorError(f"safetensors: the metadata of {name} are not strings")
    entries = {key: _check_entry(key, entry, name) for key, entry in table.items()}
    at = 0
    for key, (_, _, start, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if start != at:
            raise SafetensorError(f"safetensors: `{key}` of {name} begins at {start} where {at} was expected")
        at = end
    if at != size - 8 - length:
        raise SafetensorError(
            f"safetensors: {name} holds {size - 8 - length} bytes of data, its header wants {at}"
        )
    return entries, metadata, 8 + length


def _is_size(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _check_entry(key, entry, name):
    bad = SafetensorError(f"safetensors: {name}: bad description of `{key}`: {entry!r:.200}")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise bad
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or not isinstance(shape, list) or not isinstance(offsets, list):
        raise bad
    if dtype not in _DTYPES:
        raise SafetensorError(f"safetensors: {name}: `{key}` has the unknown type {dtype!r:.40}")
    if len(offsets) != 2 or len(shape) > 64 or not all(map(_is_size, [*shape, *offsets])):
        raise bad
    start, end = offsets
    if prod(shape) * _DTYPES[dtype].itemsize != end - start:
        raise SafetensorError(
            f"safetensors: {name}: `{key}` of type {dtype}, shape {shape} does not fill {end - start} bytes"
        )
    return dtype, shape, start, end


def _make(buffer, at, dtype, shape):
    dtype = _DTYPES[dtype]
    nbytes = prod(shape) * dtype.itemsize
    if at % dtype.itemsize:  # written by someone who did not align it
        storage = UntypedStorage(nbytes)
        memoryview(storage).cast("B")[:] = buffer[at : at + nbytes]
    else:
        storage = UntypedStorage._from_buffer(buffer, at, nbytes)
    strides = [prod(shape[i + 1 :]) for i in range(len(shape))]
    typed = TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)
    return _rebuild_tensor(typed, 0, tuple(shape), tuple(strides))


class _Slice:
    """A tensor of a file, of which indexing reads a part."""

    def __init__(self, opened, name):
        self._opened, self._name = opened, name

    def get_shape(self):
        return list(self._opened._entry(self._name)[1])

    def get_dtype(self):
        return self._opened._entry(self._name)[0]

    def __getitem__(self, index):
        return self._opened._mapped(self._name)[index].clone().to(self._opened._device)


class safe_open:
    """The tensors of a file, read when they are asked for.

    >>> with safe_open("model.safetensors") as file:
    ...     weight = file.get_tensor("weight")
    """

    def __init__(self, filename, framework="pt", device="cpu"):
        if framework not in ("pt", "torch", "pytorch"):
            raise SafetensorError(f"safetensors: framework {framework!r} is not this one; ask for 'pt'")
        self._path, self._device = os.fsdecode(filename), device
        with open(filename, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
        self._entries, self._metadata, self._start = _read_header(memoryview(self._buffer), self._path)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._buffer = None  # tensors that were read keep it mapped

    def keys(self):
        """The names, sorted."""
        return sorted(self._entries)

    def offset_keys(self):
        """The names in the order of their bytes."""
        return sorted(self._entries, key=lambda key: self._entries[key][2])

    def metadata(self):
        return self._metadata

    def _entry(self, name):
        if name not in self._entries:
            raise SafetensorError(f"safetensors: {self._path} does not contain tensor {name}")
        return self._entries[name]

    def _mapped(self, name):
        if self._buffer is None:
            raise SafetensorError("safetensors: File is closed")
        dtype, shape, start, _ = self._entry(name)
        return _make(self._buffer, self._start + start, dtype, shape)

    def get_tensor(self, name):
        """One tensor. On the CPU it is a copy-on-write view of the file."""
        return self._mapped(name).to(self._device)

    def get_slice(self, name):
        """One tensor, of which indexing reads a part."""
        self._entry(name)
        return _Slice(self, name)


def load_file(filename, device="cpu"):
    """All tensors of a file, by name."""
    with safe_open(filename, device=device) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def load(data):
    """All tensors of bytes, by name."""
    entries, _, start = _read_header(memoryview(data), "the data")
    content = bytearray(data)
    return {name: _make(content, start + at, dtype, shape) for name, (dtype, shape, at, _) in entries.items()}
