"""The file `.metadata`: a pickle that names PyTorch's classes, read with a closed list of names."""

import enum
import pathlib
import pickle
import types

import rushlight as torch
from rushlight import _C
from rushlight.distributed.checkpoint import metadata as m

_MODULE = "torch.distributed.checkpoint.metadata"
_CLASSES = {name: getattr(m, name) for name in (*m.__all__, "_MEM_FORMAT_ENCODING")}


def _get_layout(name):
    return getattr(torch, name.split(".")[-1])


def _member(kind, name):
    """What Python 3.11 before 3.11.4 writes for members of an enumeration; of nothing else."""
    if not (isinstance(kind, type) and issubclass(kind, enum.Enum) and name in kind.__members__):
        raise pickle.UnpicklingError("an index of a checkpoint asks for an attribute")
    return kind[name]


_GLOBALS = {
    **{(_MODULE, name): cls for name, cls in _CLASSES.items()},
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): m._StorageInfo,
    ("torch", "Size"): torch.Size,
    ("torch.serialization", "_get_layout"): _get_layout,
    ("pathlib", "PosixPath"): pathlib.PurePosixPath,
    ("pathlib", "PurePosixPath"): pathlib.PurePosixPath,
    ("pathlib", "WindowsPath"): pathlib.PureWindowsPath,
    ("collections", "OrderedDict"): dict,
    ("builtins", "getattr"): _member,
}
_NAMES = {id(value): key for key, value in reversed(_GLOBALS.items()) if key[0].startswith("torch")}


class _Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes our classes under PyTorch's names."""

    def reducer_override(self, obj):
        if isinstance(obj, torch.dtype):
            return str(obj).split(".")[-1]
        if isinstance(obj, torch.layout):
            return _get_layout, (str(obj),)
        if isinstance(obj, torch.Size):
            return torch.Size, (tuple(obj),)
        return NotImplemented

    def save_global(self, obj, name=None):
        if isinstance(obj, torch.dtype):
            module = "torch"
        elif id(obj) in _NAMES:
            module, name = _NAMES[id(obj)]
        else:
            super().save_global(obj, name)
            return
        self.save(module)
        self.save(name)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)

    dispatch = {**pickle._Pickler.dispatch}  # type: ignore[attr-defined]
    for _kind in (type, types.FunctionType):
        dispatch[_kind] = lambda pickler, obj: pickler.save_global(obj)  # type: ignore[attr-defined]


_CALLABLES = {id(value) for value in _GLOBALS.values()}


class _Unpickler(_C._Unpickler):
    """Python's own would take 20 GB for a memo that a damaged file numbers so."""

    def find_class(self, module, name):
        if (module, name) in _GLOBALS:
            return _GLOBALS[module, name]
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        raise pickle.UnpicklingError(
            f"an index of a checkpoint names {module}.{name}, which is not part of one"
        )

    def _check_callable(self, function):
        if id(function) not in _CALLABLES:
            raise pickle.UnpicklingError(f"an index of a checkpoint calls {function!r:.80}")

    def _check_changed(self, container):
        raise pickle.UnpicklingError(f"an index of a checkpoint fills {type(container).__name__}")

    def _new_object(self, cls, args):
        if id(cls) not in _CALLABLES or not isinstance(cls, type):
            raise pickle.UnpicklingError(f"an index of a checkpoint makes {cls!r:.80}")
        return cls.__new__(cls, *args)

    def _build(self, target, state):
        if type(target) not in _CLASSES.values() and type(target) is not m._StorageInfo:
            raise pickle.UnpicklingError(f"an index of a checkpoint gives {type(target).__name__} a state")
        if hasattr(type(target), "__setstate__"):
            target.__setstate__(state)
        else:
            target.__dict__.update(state)


def dump(index, stream):
    """Write an index."""
    _Pickler(stream, protocol=4).dump(index)


def load(stream):
    """Read an index; raises pickle.UnpicklingError for what is none."""
    try:
        index = _Unpickler(stream, "utf-8").load()
    except (EOFError, MemoryError, pickle.UnpicklingError):
        raise
    except Exception as error:  # a damaged pickle can call what it may name with anything
        raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from None
    if not isinstance(index, m.Metadata):
        raise pickle.UnpicklingError(f"expected Metadata, but the file holds {type(index)}")
    _check(index)
    return index


def _check(index):
    """That an index holds what its readers look at."""
    for name, saved in _field(index, "state_dict_metadata", dict).items():
        if not isinstance(name, str) or not isinstance(
            saved, (m.TensorStorageMetadata, m.BytesStorageMetadata)
        ):
            raise pickle.UnpicklingError(f"it says of {name!r} that it is {saved!r:.80}")
        if isinstance(saved, m.TensorStorageMetadata):
            _field(_field(saved, "properties", m.TensorProperties), "dtype", torch.dtype)
            rank = len(_field(saved, "size", torch.Size))
            for chunk in _field(saved, "chunks", list):
                if not isinstance(chunk, m.ChunkStorageMetadata):
                    raise pickle.UnpicklingError(f"{name} has a chunk that is none")
                if (
                    not rank
                    == len(_field(chunk, "offsets", torch.Size))
                    == len(_field(chunk, "sizes", torch.Size))
                ):
                    raise pickle.UnpicklingError(f"{name} has a chunk of another number of dimensions")
    for key, where in (_field(index, "storage_data", (dict, type(None))) or {}).items():
        _field(key, "fqn", str)
        _field(key, "offset", (torch.Size, type(None)))
        if isinstance(where, m._StorageInfo):
            _field(where, "relative_path", str)
            if _field(where, "offset", int) < 0 or _field(where, "length", int) < 0:
                raise pickle.UnpicklingError(f"{key.fqn} lies at {where.offset}, {where.length} bytes")


def _field(record, name, kind):
    value = getattr(record, name, pickle)  # which is of no kind
    if not isinstance(value, kind):
        found = "missing" if value is pickle else f"a {type(value).__name__}"
        raise pickle.UnpicklingError(f"{name} of {type(record).__name__} is {found}")
    return value
