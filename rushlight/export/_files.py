"""Exported programs as files: PyTorch's ``.pt2`` archives, both ways. Reading runs no code of the file."""

import io
import json
import os

import rushlight as torch
from rushlight._command.names import show_from
from rushlight._serialization.zip_records import RecordReader, RecordWriter, write_atomically, write_to_stream

from . import _pt2_values as values
from ._one_file import SUFFIX, save_file
from ._pt2_sizes import UnknownSize, size_of
from .exported_program import ExportedProgram

_MODEL, _EXAMPLES = "models/model.json", "data/sample_inputs/model.pt"
_WEIGHTS, _CONSTANTS = ("data/weights/", "weights", "weight_"), ("data/constants/", "constants", "tensor_")
_SCHEMA = 8


# --- tensors ----------------------------------------------------------------------------------------


def _write_tensors(writer, tensors, place):
    """Storages once each, and a record of who looks at which."""
    folder, kind, prefix = place
    storages, config = {}, {}
    for name, tensor in tensors.items():
        held = tensor.detach()
        if held.device.type != "cpu":
            held = held.cpu()
        storage = held.untyped_storage()
        key = (storage.data_ptr(), storage.nbytes()) if storage.nbytes() else name
        storages.setdefault(key, []).append((name, tensor, held))
    for i, group in enumerate(storages.values()):
        path = f"{prefix}{i}"
        alone = len(group) == 1 and group[0][2].nbytes < group[0][2].untyped_storage().nbytes()
        for name, tensor, held in group:
            kept = held.clone(memory_format=torch.contiguous_format) if alone else held
            is_parameter = isinstance(tensor, torch.nn.Parameter)
            meta = {**values.tensor_record(kept), "requires_grad": tensor.requires_grad}
            meta["device"] = values.device_record(tensor.device)
            config[name] = {
                "path_name": path,
                "is_param": is_parameter,
                "use_pickle": False,
                "tensor_meta": meta,
            }
        writer.write(f"{folder}{path}", memoryview(kept.untyped_storage()).cast("B"))
    writer.write(f"{folder}model_{kind}_config.json", json.dumps({"config": config}).encode())


def _read_tensors(records, place):
    folder, kind, prefix = place
    if records.has(f"{folder}model.pt"):  # as PyTorch wrote before 2.9
        return torch.load(io.BytesIO(records.read(f"{folder}model.pt")), weights_only=True)
    config = json.loads(records.read(f"{folder}model_{kind}_config.json"))["config"]
    storages, found = {}, {}
    for name, record in config.items():
        path = record["path_name"]
        if not path.startswith(prefix):
            raise ValueError(f"{name} is an object of a class, which is not covered")
        if record["use_pickle"]:
            found[name] = torch.load(io.BytesIO(records.read(folder + path)), weights_only=True)
            continue
        if path not in storages:
            storages[path] = records.read_storage(folder + path, records.size(folder + path))
        found[name] = _tensor(storages[path], record)
    return found


def _tensor(storage, record):
    meta = record["tensor_meta"]
    dtype = values.dtype_of(meta["dtype"])
    sizes, strides = ([size_of(s) for s in meta[key]] for key in ("sizes", "strides"))
    offset = size_of(meta["storage_offset"])
    last = offset + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True))
    if any(n < 0 for n in (*sizes, *strides, offset)):
        raise ValueError("a tensor of negative sizes")
    if 0 not in sizes and (last + 1) * dtype.itemsize > storage.nbytes():
        raise ValueError(f"a tensor of sizes {sizes} reaches past its {storage.nbytes()} bytes")
    tensor = torch.empty(0, dtype=dtype)
    if 0 in sizes:
        tensor = torch.empty(sizes, dtype=dtype)
    else:
        tensor.set_(storage, offset, sizes, strides)
    device = values.device_of(meta["device"])
    tensor = tensor if device.type == "cpu" else tensor.to(device)
    if record["is_param"]:
        return torch.nn.Parameter(tensor, requires_grad=meta["requires_grad"])
    return tensor.requires_grad_(meta["requires_grad"])


# --- files ------------------------------------------------------------------------------------------


def _examples_bytes(program):
    if program.example_inputs is None:
        return b""
    content = io.BytesIO()
    torch.save(program.example_inputs, content)
    return content.getvalue()


def save(ep, f, *, extra_files=None, opset_version=None, pickle_protocol=2):
    """Write an exported program to a path or file; ``extra_files`` are names and texts to keep with it.

    The file is an archive that PyTorch's ``torch.export.load`` reads too. A path that ends in ``.rl``
    becomes a model that runs without Python, as `save_file` writes it.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    if isinstance(f, (str, os.PathLike)) and os.fspath(f).endswith(SUFFIX):
        if extra_files:
            raise ValueError("torch.export.save: a file that runs without Python holds no extra_files")
        return save_file(ep, f)
    from ._pt2_write import program_record

    model, examples = json.dumps(program_record(ep), allow_nan=False).encode(), _examples_bytes(ep)

    def write(file):
        writer = RecordWriter(file, folder)
        _write_tensors(writer, ep.state_dict, _WEIGHTS)
        _write_tensors(writer, ep.constants, _CONSTANTS)
        writer.write(_MODEL, model)
        writer.write(_EXAMPLES, examples)
        for name, text in (extra_files or {}).items():
            writer.write(f"extra/{name}", text.encode())
        for name, content in (
            ("archive_format", b"pt2"),
            ("archive_version", b"0"),
            ("byteorder", b"little"),
        ):
            writer.write(name, content)
        writer.write(".data/version", b"6\n")
        writer.close()

    if hasattr(f, "write"):
        folder = "archive"
        return write_to_stream(f, write)
    folder = os.path.splitext(os.path.basename(os.fspath(f)))[0]
    return write_atomically(f, write)


def load(f, *, extra_files=None, expected_opset_version=None):
    """Read an archive that `save`, or PyTorch's, wrote.

    ``extra_files`` is a dict whose values are set to the texts of those names.
    """
    if not isinstance(f, (str, os.PathLike)):
        return _load(f, "the given file", extra_files)
    if os.fspath(f).endswith(SUFFIX):
        raise RuntimeError(
            "torch.export.load: a file that runs without Python holds no exported program; use load_file"
        )
    with open(f, "rb") as file:
        return _load(file, os.fspath(f), extra_files)


def _load(file, name, extra_files):
    from ._pt2_read import UnsupportedProgram, read_program

    try:
        records = RecordReader(file, name, pickled=False)
        if not records.has("archive_format") or not records.has(_MODEL):
            raise RuntimeError("the file is no archive of an exported program named 'model'")
        record = json.loads(records.read(_MODEL))
        version = record["schema_version"]["major"]
        if version != _SCHEMA:
            raise RuntimeError(f"version {version} of the format, expected {_SCHEMA}")
        state, constants = (_read_tensors(records, place) for place in (_WEIGHTS, _CONSTANTS))
        for key in extra_files or {}:
            extra_files[key] = records.read(f"extra/{key}").decode()
        return read_program(record, state, constants, _read_examples(records))
    except UnsupportedProgram:
        raise
    except (
        *(ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError),
        *(
            RuntimeError,
            SyntaxError,
            UnknownSize,
            TypeError,
            ValueError,
            NotImplementedError,
            MemoryError,
        ),
    ) as error:
        why = "out of memory" if isinstance(error, MemoryError) else str(error) or type(error).__name__
        raise RuntimeError(f"torch.export.load: {name} cannot be read: {why}") from error


def _read_examples(records):
    content = records.read(_EXAMPLES) if records.has(_EXAMPLES) else b""
    try:
        return torch.load(io.BytesIO(content), weights_only=True) if content else None
    except Exception:
        return None  # of classes that are not known here; nothing depends on them


show_from("export", load, save)
